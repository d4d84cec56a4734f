import type {
	AuthenticationResponseJSON,
	PublicKeyCredentialCreationOptionsJSON,
	PublicKeyCredentialRequestOptionsJSON,
	RegistrationResponseJSON,
} from "@simplewebauthn/browser";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";
import { can, type Right } from "../console/views.ts";
import { type AccountView, api, type Me, type PublicConfig, VIEWER_STALE } from "./api.ts";
import { runWhenLeavingAllowed } from "./held-page.ts";
import { ApiError, requestJson } from "./http.ts";
import { followLanguage } from "./parts/switches.tsx";
import { createStoredChoice } from "./remembered.ts";
import { resourceCache, useAction, useResource } from "./resource.ts";

/** The signed-in viewer, the selected account, and the service's configuration. */

interface Session {
	readonly config: PublicConfig;
	readonly me: Me | undefined;
	/** Loads the viewer again, after a sign-in or a changed profile. This and the next two functions throw ApiError. */
	refresh(): Promise<void>;
	/** Selects an account; null: the viewer's first one. */
	chooseAccount(id: string | null): Promise<void>;
	signOut(): Promise<void>;
}

type State = Pick<Session, "config" | "me">;

const SessionContext = createContext<Session | undefined>(undefined);
const ACCOUNT_KEY = "tollgate-account";
/** Storage key of the viewer's id. Other tabs compare it, because all tabs share the session cookie. */
const VIEWER_KEY = "tollgate-viewer";

export function SessionProvider(props: {
	children: ReactNode;
	waiting: ReactNode;
	failed: (error: ApiError, retry: () => void) => ReactNode;
}) {
	const [state, setState] = useState<State>();
	// Account and viewer of this tab; a selection in another tab does not change them.
	const shown = useRef<{ account: string | undefined; person: string; viewing?: true | undefined }>({
		account: undefined,
		person: "",
	});
	const reads = useRef(0);

	const read = useCallback(async (wanted: string | null) => {
		reads.current += 1;
		const nth = reads.current;
		const viewer = await readViewer(wanted);
		// A later read has started; only its result counts.
		if (nth !== reads.current) return;
		const { account, person } = shown.current;
		const chosen = viewer.me?.account;
		shown.current = { account: chosen?.id, person: viewer.me?.user.id ?? "", viewing: chosen?.viewing };
		if (shown.current.account !== account || shown.current.person !== person) resourceCache.clear();
		seen.write(shown.current.person);
		setState(viewer);
	}, []);
	const refresh = useCallback(() => read(shown.current.account ?? chosenBefore()), [read]);
	const { run: start, error } = useAction(refresh);
	useEffect(() => void start(), [start]);

	useEffect(() => {
		let isReading = false;
		// Loads the viewer once: if the session or account is lost, that read fails and would trigger another.
		const readAgain = async () => {
			if (isReading) return;
			isReading = true;
			// A failure is ignored here, because the reads of the pages fail and show it too.
			await refresh().catch(() => undefined);
			isReading = false;
		};
		const leave = () => runWhenLeavingAllowed(readAgain);
		// Another person signed in in a different tab: their data must not appear under this person's name.
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
					// An operator's view of an account is not stored: it applies to this tab until a reload.
					await read(id);
					if (!shown.current.viewing) storage.write(shown.current.account ?? "");
				},
				async signOut() {
					await authApi.signOut();
					storage.write("");
					// Loads a new document, so that no data of this viewer stays in memory.
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

/** Returns the selected account, for pages that need one. */
export function useAccount(): AccountView {
	const account = useSession().me?.account;
	if (!account) throw new Error("a page was rendered without an account");
	return account;
}

/** Returns the models with the prices of the selected account. */
export function useModels() {
	const account = useSession().me?.account?.id ?? null;
	return useResource("models", () => api.models(account));
}

/** Returns a function that tells whether the viewer's role has a right. The server uses the same table of rights. */
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

/** Returns the account in the URL, as links in statements have it, or the account selected last. */
const chosenBefore = (): string | null => new URLSearchParams(location.search).get("account") ?? storage.read();

/** Loads the viewer; with the first account if the selected one is no longer accessible. */
async function readMe(chosen: string | null): Promise<Me> {
	try {
		return await api.me(chosen);
	} catch (error) {
		if (chosen === null || !(error instanceof ApiError) || error.status !== 404) throw error;
		storage.write("");
		return await api.me(null);
	}
}

const storage = createStoredChoice(ACCOUNT_KEY);
const seen = createStoredChoice(VIEWER_KEY);

const post = <T,>(path: string, body: unknown) => requestJson<T>(`/api/auth${path}`, body);

export const authApi = {
	signUp: (person: { name: string; email: string; password: string; next: string; acceptedTerms: string | null }) =>
		post<object>("/sign-up/email", person),
	/** `chosen` replaces the name and password of the sign-up when a different browser opens the mailed link. */
	verifyEmail: (token: string, chosen?: { name: string; newPassword: string }) =>
		post<{ signedIn: boolean }>("/verify-email", { token, ...chosen }),
	signIn: (email: string, password: string, rememberMe: boolean) =>
		post<{ twoFactorRedirect?: boolean }>("/sign-in/email", { email, password, rememberMe }),
	signInWith: (provider: "github" | "google", callbackURL: string) =>
		post<{ url: string }>("/sign-in/social", { provider, callbackURL }),
	beginCompany: (email: string, next: string) => post<{ url: string }>("/company/begin", { email, next }),
	beginPasskey: () => post<PublicKeyCredentialCreationOptionsJSON>("/passkey/register-begin", {}),
	endPasskey: (name: string, response: RegistrationResponseJSON) =>
		post<object>("/passkey/register-end", { name, response }),
	beginPasskeySignIn: () => post<PublicKeyCredentialRequestOptionsJSON>("/passkey/sign-in-begin", {}),
	endPasskeySignIn: (response: AuthenticationResponseJSON) => post<object>("/passkey/sign-in-end", { response }),
	signOut: () => post<object>("/sign-out", {}),
	requestReset: (email: string) => post<object>("/request-password-reset", { email, redirectTo: "/reset" }),
	resetPassword: (newPassword: string, token: string) => post<object>("/reset-password", { newPassword, token }),
	changePassword: (currentPassword: string, newPassword: string) =>
		post<object>("/change-password", { currentPassword, newPassword, revokeOtherSessions: true }),
	updateName: (name: string) => post<object>("/update-user", { name }),
	verifyTotp: (code: string, trustDevice: boolean) => post<object>("/two-factor/verify-totp", { code, trustDevice }),
	verifyBackupCode: (code: string) => post<object>("/two-factor/verify-backup-code", { code }),
	enableTwoFactor: (password: string) =>
		post<{ totpURI: string; backupCodes: readonly string[] }>("/two-factor/enable", { password }),
	disableTwoFactor: (password: string, code: string) => post<object>("/two-factor/disable", { password, code }),
};
