import type {
	AuthenticationResponseJSON,
	PublicKeyCredentialCreationOptionsJSON,
	PublicKeyCredentialRequestOptionsJSON,
	RegistrationResponseJSON,
} from "@simplewebauthn/browser";
import { requestJson } from "./http.ts";

const post = <T>(path: string, body: unknown) => requestJson<T>(`/api/auth${path}`, body);

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
