import { Component, type ComponentType, Fragment, type ReactNode, useEffect } from "react";
import { can, type Right } from "../console/views.ts";
import type { AccountView } from "./api.ts";
import { pageFault } from "./http.ts";
import { type Lazy, lazy } from "./lazy.tsx";
import { pageAfterSignIn } from "./navigation.ts";
import { ClosedPage, NoAccountPage, NotAllowedPage, NotFoundPage } from "./pages/refused-pages.tsx";
import { SignInPage, SignUpPage, TermsPage } from "./pages/sign-in.tsx";
import { InvitePage, ResetPage, VerifyPage } from "./pages/sign-in-mail.tsx";
import { AuthLayout } from "./parts/auth-layout.tsx";
import { PasswordDialog } from "./parts/dialog.tsx";
import { ErrorMessage, PageWaiting } from "./parts/page.tsx";
import { matchPath, navigate, RouterProvider, useRoute } from "./router.tsx";
import { SessionProvider, useSession } from "./session.tsx";
import { PublicShell, Shell } from "./shell.tsx";
import { language, t } from "./texts.tsx";

interface Params {
	readonly id: string;
	readonly section: string;
}

/** Wraps a page whose code is loaded when the page opens, so that the first visit loads less. */
const onDemand = (load: () => Promise<{ default: ComponentType<Params> }>) => lazy(load, <PageWaiting />);

const DocsPage = onDemand(() => (language === "de" ? import("./docs/de.tsx") : import("./docs/en.tsx")));
const KeyPages = onDemand(() => import("./pages/keys.tsx"));
const ProjectPages = onDemand(() => import("./pages/projects.tsx"));
const ModelPages = onDemand(() => import("./pages/models.tsx"));
const BatchPages = onDemand(() => import("./pages/batches.tsx"));
const OperatorPages = onDemand(() => import("./operator/pages.tsx"));

type Access = "public" | "guest" | "viewer" | "account" | "operator";

type Route = readonly [
	pattern: string,
	access: Access,
	page: ComponentType<Params> & Partial<Pick<Lazy<Params>, "preload">>,
	right?: Right,
];

const ROUTES: readonly Route[] = [
	["/", "public", onDemand(() => import("./pages/landing.tsx"))],
	["/docs", "public", DocsPage],
	["/docs/:section", "public", DocsPage],
	["/models", "public", ModelPages],
	["/models/*", "public", ModelPages],
	["/sign-in", "guest", SignInPage],
	["/sign-up", "guest", SignUpPage],
	["/verify", "guest", VerifyPage],
	["/reset", "guest", ResetPage],
	["/invite", "viewer", InvitePage],
	["/overview", "account", onDemand(() => import("./pages/overview.tsx"))],
	["/keys", "account", KeyPages],
	["/keys/:id", "account", KeyPages],
	["/projects", "account", ProjectPages, "projects.see"],
	["/projects/:id", "account", ProjectPages, "projects.see"],
	["/credit", "account", onDemand(() => import("./pages/credit.tsx")), "credit.see"],
	["/usage", "account", onDemand(() => import("./pages/usage.tsx"))],
	["/requests", "account", onDemand(() => import("./pages/requests.tsx"))],
	["/requests/:id", "account", onDemand(() => import("./pages/request.tsx"))],
	["/playground", "account", onDemand(() => import("./pages/playground/playground.tsx")), "requests.send"],
	["/batches", "account", BatchPages],
	["/batches/:id", "account", BatchPages],
	["/settings", "viewer", onDemand(() => import("./pages/settings.tsx"))],
	["/operator", "operator", OperatorPages],
	["/operator/:section", "operator", OperatorPages],
	["/operator/:section/:id", "operator", OperatorPages],
];

/** Loads the current page's code in parallel with the request for the viewer. */
export function preloadPage(): void {
	ROUTES.find(([pattern]) => matchPath(pattern, location.pathname))?.[2].preload?.();
}

export function App() {
	return (
		<SessionProvider
			waiting={<PageWaiting />}
			failed={(error, retry) => (
				<AuthLayout title={t("The console cannot start")}>
					<ErrorMessage error={error} retry={retry} />
				</AuthLayout>
			)}
		>
			<FaultBoundary>
				<RouterProvider>
					<CurrentPage />
				</RouterProvider>
			</FaultBoundary>
		</SessionProvider>
	);
}

function CurrentPage() {
	const { me } = useSession();
	const { path } = useRoute();
	const found = findRoute(path);
	const access = found?.access ?? "public";
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
	if (path === "/") return <GoTo to={pageAfterSignIn(path, me)} />;
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

/** Chooses the page for a route, or a page that says which right is missing. The server enforces rights itself. */
function pageFor(found: ReturnType<typeof findRoute>, account: AccountView | null, operator: boolean): ReactNode {
	if (!found || (found.access === "operator" && !operator)) return <NotFoundPage />;
	const { access, right, page } = found;
	if (access === "account" && account === null) return <NoAccountPage />;
	if (access === "account" && account?.closed) return <ClosedPage />;
	if (right !== undefined && account !== null && !can(account.role, right)) return <NotAllowedPage right={right} />;
	return page;
}

/** The React key is the object's id, so that each object's page starts with fresh state. */
function findRoute(path: string) {
	for (const [pattern, access, Page, right] of ROUTES) {
		const params = matchPath(pattern, path);
		if (!params) continue;
		const { id = "", section = "" } = params;
		return { access, right, page: <Page key={id} id={id} section={section} /> };
	}
	return undefined;
}

function GoTo({ to }: { to: string }) {
	useEffect(() => navigate(to, { replace: true }), [to]);
	return <PageWaiting />;
}

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
				<ErrorMessage error={pageFault()} retry={() => location.reload()} />
			</div>
		);
	}
}
