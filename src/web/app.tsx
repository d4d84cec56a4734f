import type { ReactNode } from "react";
import { Fragment, useEffect } from "react";
import { may, type Right } from "../console/views.ts";
import type { Lazy } from "./lazy.tsx";
import { lazy } from "./lazy.tsx";
import { NoAccountPage } from "./pages/no-account.tsx";
import { ClosedPage, NotAllowedPage } from "./pages/not-allowed.tsx";
import { NotFoundPage } from "./pages/not-found.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { SignInPage } from "./pages/sign-in.tsx";
import { InvitePage, ResetPage, VerifyPage } from "./pages/sign-in-mail.tsx";
import { SignUpPage } from "./pages/sign-up.tsx";
import { TermsPage } from "./pages/terms.tsx";
import { AuthLayout } from "./parts/auth-layout.tsx";
import { FaultBoundary } from "./parts/fault-boundary.tsx";
import { PasswordDialog } from "./parts/password-dialog.tsx";
import { Problem } from "./parts/problem.tsx";
import { PageWaiting } from "./parts/waiting.tsx";
import { PublicShell } from "./public-shell.tsx";
import { matchPath, navigate, Routing, usePlace } from "./router.tsx";
import { SessionProvider, useSession } from "./session.tsx";
import { Shell } from "./shell.tsx";
import { language, t } from "./texts.tsx";
import type { AccountView } from "./views.ts";

// What the first visit does not need comes when it is asked for.
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
const BatchesPage = lazy(() => import("./pages/batches.tsx"), <PageWaiting />);
const BatchPage = lazy(() => import("./pages/batch.tsx"), <PageWaiting />);
const SettingsPage = lazy(() => import("./pages/settings.tsx"), <PageWaiting />);
const OperatorPages = lazy(() => import("./operator/pages.tsx"), <PageWaiting />);

type Access = "public" | "guest" | "viewer" | "account" | "operator";

interface Route {
	readonly pattern: string;
	readonly access: Access;
	/** Asked of a member's role. */
	readonly right?: Right;
	/** What is fetched for it. */
	readonly code?: Pick<Lazy<object>, "preload">;
	readonly page: (found: Record<string, string>) => ReactNode;
}

/** A page of one thing has its id as its key: what was begun with one is not gone on with on another. */
const ROUTES: readonly Route[] = [
	{ pattern: "/", access: "public", code: LandingPage, page: () => <LandingPage /> },
	{ pattern: "/docs", access: "public", code: DocsPage, page: () => <DocsPage section="quick-start" /> },
	{
		pattern: "/docs/:section",
		access: "public",
		code: DocsPage,
		page: ({ section = "" }) => <DocsPage section={section} />,
	},
	{ pattern: "/models", access: "public", code: ModelsPage, page: () => <ModelsPage /> },
	{
		pattern: "/models/*",
		access: "public",
		code: ModelPage,
		page: ({ "*": id = "" }) => <ModelPage key={id} id={id} />,
	},
	{ pattern: "/sign-in", access: "guest", page: () => <SignInPage /> },
	{ pattern: "/sign-up", access: "guest", page: () => <SignUpPage /> },
	{ pattern: "/verify", access: "guest", page: () => <VerifyPage /> },
	{ pattern: "/reset", access: "guest", page: () => <ResetPage /> },
	{ pattern: "/invite", access: "viewer", page: () => <InvitePage /> },
	{ pattern: "/overview", access: "account", page: () => <OverviewPage /> },
	{ pattern: "/keys", access: "account", code: KeysPage, page: () => <KeysPage /> },
	{ pattern: "/keys/:id", access: "account", code: KeyPage, page: ({ id = "" }) => <KeyPage key={id} id={id} /> },
	{ pattern: "/projects", access: "account", right: "projects.see", code: ProjectsPage, page: () => <ProjectsPage /> },
	{
		pattern: "/projects/:id",
		access: "account",
		right: "projects.see",
		code: ProjectPage,
		page: ({ id = "" }) => <ProjectPage key={id} id={id} />,
	},
	{ pattern: "/credit", access: "account", right: "credit.see", code: CreditPage, page: () => <CreditPage /> },
	{ pattern: "/usage", access: "account", code: UsagePage, page: () => <UsagePage /> },
	{ pattern: "/requests", access: "account", code: RequestsPage, page: () => <RequestsPage /> },
	{
		pattern: "/requests/:id",
		access: "account",
		code: RequestPage,
		page: ({ id = "" }) => <RequestPage key={id} id={id} />,
	},
	{
		pattern: "/playground",
		access: "account",
		right: "requests.send",
		code: PlaygroundPage,
		page: () => <PlaygroundPage />,
	},
	{ pattern: "/batches", access: "account", code: BatchesPage, page: () => <BatchesPage /> },
	{
		pattern: "/batches/:id",
		access: "account",
		code: BatchPage,
		page: ({ id = "" }) => <BatchPage key={id} id={id} />,
	},
	{ pattern: "/settings", access: "viewer", code: SettingsPage, page: () => <SettingsPage /> },
	{ pattern: "/operator", access: "operator", code: OperatorPages, page: () => <OperatorPages section="" id="" /> },
	{
		pattern: "/operator/:section",
		access: "operator",
		code: OperatorPages,
		page: ({ section = "" }) => <OperatorPages section={section} id="" />,
	},
	{
		pattern: "/operator/:section/:id",
		access: "operator",
		code: OperatorPages,
		page: ({ section = "", id = "" }) => <OperatorPages section={section} id={id} />,
	},
];

/** Fetches the code of the page at the address while the viewer is still being read. */
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

/** The server refuses what a viewer may not see in any case; this only says so in better words. */
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
