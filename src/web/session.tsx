import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";
import { can, type Right } from "../console/views.ts";
import { api } from "./api.ts";
import { authApi } from "./auth-api.ts";
import { VIEWER_STALE } from "./client.ts";
import { whenNotHeld } from "./held-page.ts";
import { ApiError } from "./http.ts";
import { followLanguage } from "./language-choice.ts";
import { createRemembered } from "./remembered.ts";
import { resources, useAction } from "./resource.ts";
import type { AccountView, Me, PublicConfig } from "./views.ts";

/** The signed-in viewer, the selected account, and the service's configuration. */

export interface Session {
	readonly config: PublicConfig;
	readonly me: Me | undefined;
	/** Reads the viewer again, after a sign-in or a changed profile. Throws ApiError, as the next two do. */
	refresh(): Promise<void>;
	/** Null: the viewer's first account. */
	chooseAccount(id: string | null): Promise<void>;
	signOut(): Promise<void>;
}

type State = Pick<Session, "config" | "me">;

const SessionContext = createContext<Session | undefined>(undefined);
const ACCOUNT_KEY = "tollgate-account";
/** Storage key of the viewer's id. Other tabs, which share the session, compare it. */
const VIEWER_KEY = "tollgate-viewer";

export function SessionProvider(props: {
	children: ReactNode;
	waiting: ReactNode;
	failed: (error: ApiError, retry: () => void) => ReactNode;
}) {
	const [state, setState] = useState<State>();
	// The account selected in this tab, and its viewer; other tabs do not change it.
	const shown = useRef<{ account: string | undefined; person: string; viewing?: true | undefined }>({
		account: undefined,
		person: "",
	});
	const reads = useRef(0);

	const read = useCallback(async (wanted: string | null) => {
		reads.current += 1;
		const nth = reads.current;
		const viewer = await readViewer(wanted);
		// Only the latest read's result counts.
		if (nth !== reads.current) return;
		const { account, person } = shown.current;
		const chosen = viewer.me?.account;
		shown.current = { account: chosen?.id, person: viewer.me?.user.id ?? "", viewing: chosen?.viewing };
		if (shown.current.account !== account || shown.current.person !== person) resources.clear();
		seen.write(shown.current.person);
		setState(viewer);
	}, []);
	const refresh = useCallback(() => read(shown.current.account ?? chosenBefore()), [read]);
	const { run: start, error } = useAction(refresh);
	useEffect(() => void start(), [start]);

	useEffect(() => {
		let isReading = false;
		// If session or account are lost, reading fails again, so it is tried once.
		const readAgain = async () => {
			if (isReading) return;
			isReading = true;
			// After a failure the pages show the errors of their own reads.
			await refresh().catch(() => undefined);
			isReading = false;
		};
		const leave = () => whenNotHeld(readAgain);
		// Another tab signed in as another person, whose data must not appear under this person's name.
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
					// An operator's view of an account is for this tab, until it is loaded again.
					await read(id);
					if (!shown.current.viewing) storage.write(shown.current.account ?? "");
				},
				async signOut() {
					await authApi.signOut();
					storage.write("");
					// A full page load, so that memory keeps nothing of this viewer.
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

/** The selected account, for pages that need one. */
export function useAccount(): AccountView {
	const account = useSession().me?.account;
	if (!account) throw new Error("a page was rendered without an account");
	return account;
}

/** Returns a function that tells whether the viewer's role has a right; the server checks the same table. */
export function useMay(): (right: Right) => boolean {
	const role = useSession().me?.account?.role;
	return useCallback((right) => role !== undefined && can(role, right), [role]);
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

/** The account in the address (as of a statement's link), or the one selected last. */
function chosenBefore(): string | null {
	return new URLSearchParams(location.search).get("account") ?? storage.read();
}

/** Takes the first account if the selected one is no longer accessible. */
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
