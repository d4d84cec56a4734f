import { Component, Fragment, type ReactNode, useEffect } from "react";
import { may, type Right } from "../console/views.ts";
import { pageFault } from "./http.ts";
import { type Lazy, lazy } from "./lazy.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { ClosedPage, NoAccountPage, NotAllowedPage, NotFoundPage } from "./pages/refused-pages.tsx";
import { SignInPage } from "./pages/sign-in.tsx";
import { InvitePage, ResetPage, VerifyPage } from "./pages/sign-in-mail.tsx";
import { SignUpPage, TermsPage } from "./pages/sign-up.tsx";

import { AuthLayout } from "./parts/auth-layout.tsx";
import { PasswordDialog } from "./parts/password-dialog.tsx";
import { Problem } from "./parts/problem.tsx";
import { PageWaiting } from "./parts/waiting.tsx";
import { PublicShell } from "./public-shell.tsx";
import { matchPath, navigate, Routing, usePlace } from "./router.tsx";
import { SessionProvider, useSession } from "./session.tsx";
import { Shell } from "./shell.tsx";
import { language, t } from "./texts.tsx";
import type { AccountView } from "./views.ts";

// Code that the first visit does not need is loaded on demand.
const LandingPage = lazy(() => import("./pages/landing.tsx"), <PageWaiting />);
const DocsPage = lazy(() => (language === "de" ? import("./docs/de.tsx") : import("./docs/en.tsx")), <PageWaiting />);
const ModelsPage = lazy(() => import("./pages/models.tsx"), <PageWaiting />);
const ModelPage = lazy(() => import("./pages/model.tsx"), <PageWaiting />);
const KeysPage = lazy(() => import("./pages/keys.tsx"), <PageWaiting />);
const KeyPage = lazy(() => import("./pages/key.tsx"), <PageWaiting />);
const ProjectsPage = lazy(() => import("./pages/projects.tsx"), <PageWaiting />);
const ProjectPage = lazy(() => import("./pages/project.tsx"), <PageWaiting />);
const CreditPage = lazy(() => import("./pages/credit.tsx"), <PageWaiting />);
const UsagePage = lazy(() => import("./pages/usage.tsx"), <PageWaiting />);
const RequestsPage = lazy(() => import("./pages/requests.tsx"), <PageWaiting />);
const RequestPage = lazy(() => import("./pages/request.tsx"), <PageWaiting />);
const PlaygroundPage = lazy(() => import("./pages/playground/playground.tsx"), <PageWaiting />);
const BatchPages = lazy<{ id?: string }>(() => import("./pages/batches.tsx"), <PageWaiting />);
const SettingsPage = lazy(() => import("./pages/settings.tsx"), <PageWaiting />);
const OperatorPages = lazy(() => import("./operator/pages.tsx"), <PageWaiting />);

type Access = "public" | "guest" | "viewer" | "account" | "operator";

interface Route {
	readonly pattern: string;
	readonly access: Access;
	/** Required right of the member's role. */
	readonly right?: Right | undefined;
	/** Data to prefetch. */
	readonly code?: Pick<Lazy<object>, "preload"> | undefined;
	readonly page: (found: Record<string, string>) => ReactNode;
}

type Page = Route["page"];
type Code = Route["code"];
const open = (pattern: string, page: Page, code?: Code): Route => ({ pattern, access: "public", page, code });
const guest = (pattern: string, page: Page): Route => ({ pattern, access: "guest", page });
const viewer = (pattern: string, page: Page, code?: Code): Route => ({ pattern, access: "viewer", page, code });
const ofAccount = (pattern: string, page: Page, code?: Code, right?: Right): Route => ({
	pattern,
	access: "account",
	page,
	code,
	right,
});
const ofOperator = (pattern: string): Route => ({
	pattern,
	access: "operator",
	page: ({ section = "", id = "" }) => <OperatorPages section={section} id={id} />,
	code: OperatorPages,
});

/** A detail page is keyed by its id, so that state of one thing is not carried to another. */
const ROUTES: readonly Route[] = [
	open("/", () => <LandingPage />, LandingPage),
	open("/docs", () => <DocsPage section="quick-start" />, DocsPage),
	open("/docs/:section", ({ section = "" }) => <DocsPage section={section} />, DocsPage),
	open("/models", () => <ModelsPage />, ModelsPage),
	open("/models/*", ({ "*": id = "" }) => <ModelPage key={id} id={id} />, ModelPage),
	guest("/sign-in", () => <SignInPage />),
	guest("/sign-up", () => <SignUpPage />),
	guest("/verify", () => <VerifyPage />),
	guest("/reset", () => <ResetPage />),
	viewer("/invite", () => <InvitePage />),
	ofAccount("/overview", () => <OverviewPage />),
	ofAccount("/keys", () => <KeysPage />, KeysPage),
	ofAccount("/keys/:id", ({ id = "" }) => <KeyPage key={id} id={id} />, KeyPage),
	ofAccount("/projects", () => <ProjectsPage />, ProjectsPage, "projects.see"),
	ofAccount("/projects/:id", ({ id = "" }) => <ProjectPage key={id} id={id} />, ProjectPage, "projects.see"),
	ofAccount("/credit", () => <CreditPage />, CreditPage, "credit.see"),
	ofAccount("/usage", () => <UsagePage />, UsagePage),
	ofAccount("/requests", () => <RequestsPage />, RequestsPage),
	ofAccount("/requests/:id", ({ id = "" }) => <RequestPage key={id} id={id} />, RequestPage),
	ofAccount("/playground", () => <PlaygroundPage />, PlaygroundPage, "requests.send"),
	ofAccount("/batches", () => <BatchPages />, BatchPages),
	ofAccount("/batches/:id", ({ id = "" }) => <BatchPages key={id} id={id} />, BatchPages),
	viewer("/settings", () => <SettingsPage />, SettingsPage),
	ofOperator("/operator"),
	ofOperator("/operator/:section"),
	ofOperator("/operator/:section/:id"),
];

/** Loads the page's code while the viewer is still being read. */
export function preloadPage(): void {
	ROUTES.find(({ pattern }) => matchPath(pattern, location.pathname))?.code?.preload();
}

export function App() {
	return (
		<SessionProvider
			waiting={<PageWaiting />}
			failed={(error, retry) => (
				<AuthLayout title={t("The console cannot start")}>
					<Problem error={error} retry={retry} />
				</AuthLayout>
			)}
		>
			<FaultBoundary>
				<Routing>
					<CurrentPage />
				</Routing>
			</FaultBoundary>
		</SessionProvider>
	);
}

function CurrentPage() {
	const { me } = useSession();
	const { path } = usePlace();
	const found = findRoute(path);
	const access = found?.route.access ?? "public";
	if (access === "guest") return found?.page;
	if (!me) {
		if (access !== "public") return <GoTo to={`/sign-in?next=${encodeURIComponent(path + location.search)}`} />;
		return (
			<PublicShell>
				<FaultBoundary place={path}>{found?.page ?? <NotFoundPage />}</FaultBoundary>
			</PublicShell>
		);
	}
	if (me.termsDue) return <TermsPage terms={me.termsDue} />;
	if (path === "/") return <GoTo to="/overview" />;
	return (
		<>
			<Shell>
				<FaultBoundary place={`${path} ${me.account?.id}`}>
					{/* As a page of one thing, so those of one account: what was typed for it is not saved to another. */}
					<Fragment key={me.account?.id}>{pageFor(found, me.account, me.user.operator)}</Fragment>
				</FaultBoundary>
			</Shell>
			<PasswordDialog />
		</>
	);
}

/** The server enforces rights; this only explains them. */
function pageFor(
	found: { route: Route; page: ReactNode } | undefined,
	account: AccountView | null,
	operator: boolean,
): ReactNode {
	if (!found) return <NotFoundPage />;
	if (found.route.access === "operator" && !operator) return <NotFoundPage />;
	if (found.route.access === "account" && account === null) return <NoAccountPage />;
	if (found.route.access === "account" && account?.closed) return <ClosedPage />;
	const { right } = found.route;
	if (right !== undefined && account !== null && !may(account.role, right)) return <NotAllowedPage right={right} />;
	return found.page;
}

function findRoute(path: string): { route: Route; page: ReactNode } | undefined {
	for (const route of ROUTES) {
		const parameters = matchPath(route.pattern, path);
		if (parameters) return { route, page: route.page(parameters) };
	}
	return undefined;
}

function GoTo({ to }: { to: string }) {
	useEffect(() => navigate(to, { replace: true }), [to]);
	return <PageWaiting />;
}

/** Shows an error of a page in its place; the rest stays usable. A change of `place` resets it. */
class FaultBoundary extends Component<{ place?: string; children: ReactNode }, { failed: boolean }> {
	override state = { failed: false };

	static getDerivedStateFromError() {
		return { failed: true };
	}

	override componentDidUpdate(before: { place?: string }) {
		if (this.state.failed && before.place !== this.props.place) this.setState({ failed: false });
	}

	override render() {
		if (!this.state.failed) return this.props.children;
		return (
			<div className="page">
				<Problem error={pageFault()} retry={() => location.reload()} />
			</div>
		);
	}
}
