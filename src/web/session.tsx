import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";
import { may, type Right } from "../console/views.ts";
import { api } from "./api.ts";
import { authApi } from "./auth-api.ts";
import { VIEWER_STALE } from "./client.ts";
import { whenFree } from "./held-page.ts";
import { ApiError } from "./http.ts";
import { followLanguage } from "./language-choice.ts";
import { createRemembered } from "./remembered.ts";
import { resources, useAction } from "./resource.ts";
import type { AccountView, Me, PublicConfig } from "./views.ts";

/** The viewer, the account shown, and the service's configuration. */

export interface Session {
	readonly config: PublicConfig;
	readonly me: Me | undefined;
	/** Reads the viewer again, after sign-in or a profile change. Throws ApiError, like the next two. */
	refresh(): Promise<void>;
	chooseAccount(id: string): Promise<void>;
	signOut(): Promise<void>;
}

type State = Pick<Session, "config" | "me">;

const SessionContext = createContext<Session | undefined>(undefined);
const ACCOUNT_KEY = "tollgate-account";
/** The viewer's id, for other tabs, which share the session. */
const VIEWER_KEY = "tollgate-viewer";

export function SessionProvider(props: {
	children: ReactNode;
	waiting: ReactNode;
	failed: (error: ApiError, retry: () => void) => ReactNode;
}) {
	const [state, setState] = useState<State>();
	// The account of this tab, which other tabs do not change, and its viewer.
	const shown = useRef<{ account: string | undefined; person: string }>({ account: undefined, person: "" });
	const reads = useRef(0);

	const read = useCallback(async (wanted: string | null) => {
		reads.current += 1;
		const nth = reads.current;
		const viewer = await readViewer(wanted);
		// Of overlapping reads the last one counts.
		if (nth !== reads.current) return;
		const { account, person } = shown.current;
		shown.current = { account: viewer.me?.account?.id, person: viewer.me?.user.id ?? "" };
		if (shown.current.account !== account || shown.current.person !== person) resources.clear();
		seen.write(shown.current.person);
		setState(viewer);
	}, []);
	const refresh = useCallback(() => read(shown.current.account ?? chosenBefore()), [read]);
	const { run: start, error } = useAction(refresh);
	useEffect(() => void start(), [start]);

	useEffect(() => {
		let isReading = false;
		// Reading the viewer may find the session or account gone too and is not repeated for that.
		const readAgain = async () => {
			if (isReading) return;
			isReading = true;
			// If that fails, the page shows its own read errors.
			await refresh().catch(() => undefined);
			isReading = false;
		};
		const leave = () => whenFree(readAgain);
		// Further answers would be another person's, under this one's name.
		const compare = ({ key, newValue }: StorageEvent) => {
			if (key === VIEWER_KEY && newValue !== shown.current.person) leave();
		};
		addEventListener(VIEWER_STALE, leave);
		addEventListener("storage", compare);
		return () => {
			removeEventListener(VIEWER_STALE, leave);
			removeEventListener("storage", compare);
		};
	}, [refresh]);

	const session = useMemo<Session | undefined>(
		() =>
			state && {
				...state,
				refresh,
				async chooseAccount(id) {
					await read(id);
					storage.write(shown.current.account ?? "");
				},
				async signOut() {
					await authApi.signOut();
					storage.write("");
					// A full reload, so that nothing of this viewer stays in memory.
					location.assign("/sign-in");
				},
			},
		[state, read, refresh],
	);

	if (error && !state) return props.failed(error, () => void start());
	if (!session) return props.waiting;
	return <SessionContext value={session}>{props.children}</SessionContext>;
}

export function useSession(): Session {
	const session = useContext(SessionContext);
	if (!session) throw new Error("a page was rendered outside of its session");
	return session;
}

/** For pages that need a signed-in viewer with an account. */
export function useAccount(): AccountView {
	const account = useSession().me?.account;
	if (!account) throw new Error("a page was rendered without an account");
	return account;
}

/** Whether the viewer's role allows it; the server checks the same table. */
export function useMay(): (right: Right) => boolean {
	const role = useSession().me?.account?.role;
	return useCallback((right) => role !== undefined && may(role, right), [role]);
}

async function readViewer(chosen: string | null): Promise<State> {
	const config = await api.config();
	if (!config.signedIn) return { config, me: undefined };
	try {
		const me = await readMe(chosen);
		void followLanguage(me.user.language, api.setLanguage);
		return { config, me };
	} catch (error) {
		if (error instanceof ApiError && error.status === 401) return { config, me: undefined };
		throw error;
	}
}

/** The account in the address, as of a statement link, or the last chosen one. */
function chosenBefore(): string | null {
	return new URLSearchParams(location.search).get("account") ?? storage.read();
}

/** The chosen account may be gone: then the first one. */
async function readMe(chosen: string | null): Promise<Me> {
	try {
		return await api.me(chosen);
	} catch (error) {
		if (chosen === null || !(error instanceof ApiError) || error.status !== 404) throw error;
		storage.write("");
		return await api.me(null);
	}
}

const storage = createRemembered(ACCOUNT_KEY);
const seen = createRemembered(VIEWER_KEY);
