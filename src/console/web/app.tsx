import type { ReactNode } from "react";
import { lazy, Suspense, useEffect } from "react";
import { KeysPage } from "./pages/keys.tsx";
import { NoAccountPage } from "./pages/no-account.tsx";
import { NotFoundPage } from "./pages/not-found.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { SignInPage } from "./pages/sign-in.tsx";
import { InvitePage, ResetPage, VerifyPage } from "./pages/sign-in-mail.tsx";
import { SignUpPage } from "./pages/sign-up.tsx";
import { Problem } from "./parts/problem.tsx";
import { PageWaiting } from "./parts/waiting.tsx";
import { PublicShell } from "./public-shell.tsx";
import { matchPath, navigate, usePlace } from "./router.tsx";
import { SessionProvider, useSession } from "./session.tsx";
import { Shell } from "./shell.tsx";

// What the first visit does not need comes when it is asked for.
const LandingPage = lazy(() => import("./pages/landing.tsx"));
const DocsPage = lazy(() => import("./docs/docs.tsx"));
const ModelsPage = lazy(() => import("./pages/models.tsx"));
const ModelPage = lazy(() => import("./pages/model.tsx"));
const KeyPage = lazy(() => import("./pages/key.tsx"));
const CreditPage = lazy(() => import("./pages/credit.tsx"));
const UsagePage = lazy(() => import("./pages/usage.tsx"));
const RequestsPage = lazy(() => import("./pages/requests.tsx"));
const RequestPage = lazy(() => import("./pages/request.tsx"));
const PlaygroundPage = lazy(() => import("./pages/playground.tsx"));
const SettingsPage = lazy(() => import("./pages/settings.tsx"));
const OperatorPages = lazy(() => import("./operator/pages.tsx"));

type Access = "public" | "guest" | "viewer" | "account" | "operator";

interface Route {
	readonly pattern: string;
	readonly access: Access;
	readonly page: (found: Record<string, string>) => ReactNode;
}

const ROUTES: readonly Route[] = [
	{ pattern: "/", access: "public", page: () => <LandingPage /> },
	{ pattern: "/docs", access: "public", page: () => <DocsPage section="quick-start" /> },
	{ pattern: "/docs/:section", access: "public", page: ({ section = "" }) => <DocsPage section={section} /> },
	{ pattern: "/models", access: "public", page: () => <ModelsPage /> },
	{ pattern: "/models/*", access: "public", page: ({ rest = "" }) => <ModelPage id={rest} /> },
	{ pattern: "/sign-in", access: "guest", page: () => <SignInPage /> },
	{ pattern: "/sign-up", access: "guest", page: () => <SignUpPage /> },
	{ pattern: "/verify", access: "guest", page: () => <VerifyPage /> },
	{ pattern: "/reset", access: "guest", page: () => <ResetPage /> },
	{ pattern: "/invite", access: "viewer", page: () => <InvitePage /> },
	{ pattern: "/overview", access: "account", page: () => <OverviewPage /> },
	{ pattern: "/keys", access: "account", page: () => <KeysPage /> },
	{ pattern: "/keys/:id", access: "account", page: ({ id = "" }) => <KeyPage id={id} /> },
	{ pattern: "/credit", access: "account", page: () => <CreditPage /> },
	{ pattern: "/usage", access: "account", page: () => <UsagePage /> },
	{ pattern: "/requests", access: "account", page: () => <RequestsPage /> },
	{ pattern: "/requests/:id", access: "account", page: ({ id = "" }) => <RequestPage id={id} /> },
	{ pattern: "/playground", access: "account", page: () => <PlaygroundPage /> },
	{ pattern: "/settings", access: "viewer", page: () => <SettingsPage /> },
	{ pattern: "/operator", access: "operator", page: () => <OperatorPages section="" id="" /> },
	{
		pattern: "/operator/:section",
		access: "operator",
		page: ({ section = "" }) => <OperatorPages section={section} id="" />,
	},
	{
		pattern: "/operator/:section/:id",
		access: "operator",
		page: ({ section = "", id = "" }) => <OperatorPages section={section} id={id} />,
	},
];

export function App() {
	return (
		<SessionProvider
			waiting={<PageWaiting />}
			failed={(error, retry) => (
				<div className="door">
					<div className="door-card">
						<Problem error={error} retry={retry} />
					</div>
				</div>
			)}
		>
			<CurrentPage />
		</SessionProvider>
	);
}

function CurrentPage() {
	const { me } = useSession();
	const { path } = usePlace();
	const found = findRoute(path);
	const access = found?.route.access ?? "public";
	const waiting = <PageWaiting />;

	if (access === "guest") return <Suspense fallback={waiting}>{found?.page}</Suspense>;
	if (!me) {
		if (access !== "public") return <GoTo to={`/sign-in?next=${encodeURIComponent(path + location.search)}`} />;
		return (
			<PublicShell>
				<Suspense fallback={waiting}>{found?.page ?? <NotFoundPage />}</Suspense>
			</PublicShell>
		);
	}
	if (path === "/") return <GoTo to="/overview" />;
	return (
		<Shell>
			<Suspense fallback={waiting}>{pageFor(found, me.account !== null, me.user.operator)}</Suspense>
		</Shell>
	);
}

/** The server refuses what a viewer may not see in any case; this only says so in better words. */
function pageFor(
	found: { route: Route; page: ReactNode } | undefined,
	hasAccount: boolean,
	operator: boolean,
): ReactNode {
	if (!found) return <NotFoundPage />;
	if (found.route.access === "operator" && !operator) return <NotFoundPage />;
	if (found.route.access === "account" && !hasAccount) return <NoAccountPage />;
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
