import { type BetterAuthPlugin, betterAuth, type GenericEndpointContext } from "better-auth";
import { APIError } from "better-auth/api";
import { hashPassword, verifyPassword } from "better-auth/crypto";
import { magicLink, twoFactor } from "better-auth/plugins";
import type { Log } from "../../base/log.ts";
import type { Config } from "../../config.ts";
import { isDatabaseDown } from "../../db/outage.ts";
import type { Statements } from "../../db/statements.ts";
import type { Transactional } from "../../db/transactional.ts";
import { companySignInPlugin } from "../company/auth-company.ts";
import { createCompanyOidc } from "../company/company-oidc.ts";
import { databaseAway } from "../console-error.ts";
import type { ConsoleLimiter } from "../console-limiter.ts";
import { authDatabase } from "./auth-database.ts";
import { signInGuardPlugin } from "./auth-guard.ts";
import { createSignInMails } from "./auth-mails.ts";
import { passkeyPlugin } from "./auth-passkey.ts";
import { ADDRESS_HEADER, isTotp, readMailCaller, type SignIn } from "./auth-request.ts";
import { passwordResetPlugin, signUpPlugin } from "./auth-sign-up.ts";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "./password-length.ts";
import { isPersonName, NAME_RULE } from "./person-name.ts";
import { signInError } from "./sign-in-error.ts";

export type Auth = ReturnType<typeof createAuth>;

interface AuthOptions extends SignIn<"serviceName" | "terms" | "origin" | "origins" | "secret"> {
	readonly config: Pick<Config, "demo" | "production" | "signIn">;
}

const BASE_PATH = "/api/auth";
const SESSION_S = 7 * 24 * 3600;
const SESSION_RENEWED_AFTER_S = 24 * 3600;
const RESET_S = 3600;

const NAMELESS = "New member";
const SESSION_UNREADABLE = "FAILED_TO_GET_SESSION";

/** Endpoints that are off: they show or end sessions by token, change identities, or no page uses them. */
const DISABLED_PATHS = [
	"/list-sessions",
	"/revoke-session",
	"/revoke-sessions",
	"/revoke-other-sessions",
	"/change-email",
	"/delete-user",
	"/delete-user/callback",
	"/get-access-token",
	"/refresh-token",
	"/account-info",
	"/sign-in/magic-link",
	"/send-verification-email",
	"/link-social",
	"/unlink-account",
	"/update-session",
	"/verify-password",
	"/two-factor/send-otp",
	"/two-factor/verify-otp",
	"/two-factor/get-totp-uri",
];

const RATE_LIMIT = {
	enabled: true,
	storage: "database" as const,
	window: 60,
	max: 120,
	customRules: {
		"/sign-in/email": { window: 60, max: 10 },
		"/sign-up/email": { window: 60, max: 5 },
		"/request-password-reset": { window: 60, max: 3 },
		"/verify-email": { window: 60, max: 10 },
		"/reset-password": { window: 60, max: 5 },
		"/two-factor/verify-totp": { window: 60, max: 5 },
		"/two-factor/verify-backup-code": { window: 60, max: 5 },
		"/company/begin": { window: 60, max: 10 },
		"/passkey/sign-in-begin": { window: 60, max: 20 },
		"/passkey/sign-in-end": { window: 60, max: 10 },
		"/company/callback": { window: 60, max: 20 },
		"/get-session": { window: 60, max: 600 },
	},
};

/** Creates the sign-in. Sessions are read from the database each time, so that an ended one is refused at once. */
export function createAuth(
	deps: SignIn<"statements" | "log" | "mailer"> & { readonly tx: Transactional; readonly limiter: ConsoleLimiter },
	options: AuthOptions,
) {
	const { statements, log, limiter } = deps;
	const { config, origin, serviceName } = options;
	const parts = { ...deps, ...options, mails: createSignInMails(deps.mailer, options) };
	const isHttps = origin.startsWith("https://");
	const factor = twoFactor({ issuer: serviceName });
	const providers = socialProviders(config);
	const auth = betterAuth({
		appName: serviceName,
		baseURL: origin,
		basePath: BASE_PATH,
		secret: options.secret,
		trustedOrigins: [...options.origins],
		telemetry: { enabled: false },
		logger: { log: (level, message) => log.debug("sign-in", { severity: level, detail: message }) },
		database: authDatabase(deps.tx),
		user: {
			additionalFields: {
				operator: { type: "boolean", required: false, defaultValue: false, input: false },
				language: { type: "string", required: false, input: false },
			},
		},
		emailAndPassword: {
			enabled: true,
			requireEmailVerification: true,
			minPasswordLength: PASSWORD_CHARS_MIN,
			maxPasswordLength: PASSWORD_CHARS_MAX,
			password: {
				hash: (password) => limiter.hash(() => hashPassword(password)),
				verify: (asked) => limiter.hash(() => verifyPassword(asked)),
			},
			resetPasswordTokenExpiresIn: RESET_S,
			revokeSessionsOnPasswordReset: true,
			async sendResetPassword({ user, token }, request) {
				if (user.emailVerified) parts.mails.reset(user.email, readMailCaller({ headers: request?.headers }), token);
			},
		},
		socialProviders: providers,
		session: {
			expiresIn: SESSION_S,
			updateAge: SESSION_RENEWED_AFTER_S,
			cookieCache: { enabled: false },
			additionalFields: {
				companyRevision: { type: "string", required: false, input: false },
				authenticatedAt: { type: "date", required: false, input: false },
			},
		},
		rateLimit: RATE_LIMIT,
		onAPIError: { onError: (error) => rethrowExpected(error, log) },
		advanced: {
			cookiePrefix: isHttps ? "__Host-tollgate" : "tollgate",
			// `cookiePrefix` sets the prefix `__Host-`. With the library's `__Secure-` a sibling host could set the cookie.
			useSecureCookies: false,
			// Set explicitly: the library skips the origin check where NODE_ENV is `test`.
			disableOriginCheck: false,
			defaultCookieAttributes: { secure: isHttps, httpOnly: true, sameSite: "lax", path: "/" },
			ipAddress: { ipAddressHeaders: [ADDRESS_HEADER], ipv6Subnet: 64 },
		},
		disabledPaths: DISABLED_PATHS,
		databaseHooks: {
			session: {
				create: {
					before: async ({ userId }, ctx) => {
						if (config.production && !(await mayBegin(statements, userId, ctx?.path))) return false;
						return;
					},
				},
			},
			user: {
				create: { before: async (user) => onlyProved(user) },
				update: { before: async (change) => onlyNamed(change) },
			},
		},
		plugins: [
			factor,
			failingProviders(log),
			companySignInPlugin(parts, createCompanyOidc(config)),
			passkeyPlugin(parts),
			passwordResetPlugin(parts),
			signUpPlugin(parts),
			signInGuardPlugin({ ...parts, checkCode: codeCheck(factor) }),
			...(config.demo ? [signInLinks()] : []),
		],
	});
	return Object.assign(auth, { paths: servedPaths(auth.api, Object.keys(providers)) });
}

/**
 * Paths of the sign-in. None has a variable part: the library writes a row for each address and path that it receives,
 * before it looks for an endpoint.
 */
function servedPaths(endpoints: object, providers: readonly string[]): ReadonlySet<string> {
	const paths = Object.values(endpoints).map(({ path }: { path?: string }) => path);
	const fixed = paths.filter((path) => path !== undefined && !path.includes(":"));
	return new Set([...fixed, ...providers.map((id) => `/callback/${id}`)].map((path) => `${BASE_PATH}${path}`));
}

/** Refuses people whose mail address the identity provider has not verified. */
function onlyProved<U extends { emailVerified: boolean; name: string }>(data: U): { data: U } {
	// Replaces an invalid name instead of refusing the sign-in.
	if (data.emailVerified) return { data: isPersonName(data.name) ? data : { ...data, name: NAMELESS } };
	throw signInError("ADDRESS_NOT_VERIFIED", "The sign-in provider has not verified this e-mail address.", {
		status: "FORBIDDEN",
	});
}

/** Calls the library's endpoints as plain functions: hooks do not run, and no session begins. */
function codeCheck({ endpoints }: ReturnType<typeof twoFactor>) {
	return (ctx: GenericEndpointContext, code: string): Promise<unknown> => {
		const given = { context: ctx.context, headers: ctx.headers ?? new Headers() };
		return isTotp(code)
			? endpoints.verifyTOTP({ ...given, body: { code } })
			: endpoints.verifyBackupCode({ ...given, body: { code, disableSession: true } });
	};
}

/** Validates a changed name, which the library does not. */
function onlyNamed<U extends { name?: string | undefined }>(data: U): { data: U } {
	if (data.name === undefined || (typeof data.name === "string" && isPersonName(data.name))) return { data };
	throw signInError("INVALID_NAME", NAME_RULE);
}

/** Sign-in links of the first run, which `sign-in-link.ts` opens. The library's endpoint for them is off. */
function signInLinks() {
	return magicLink({
		disableSignUp: true,
		storeToken: "hashed",
		sendMagicLink: () => {},
		rateLimit: { window: 60, max: 60 },
	});
}

/**
 * Rethrows this service's faults and database failures, so that they get the console's usual response. The library
 * hides why it could not read a session, and only a database failure can be the cause.
 */
export function rethrowExpected(error: unknown, log: Log): void {
	if (isDatabaseDown(error)) throw error;
	if (error instanceof APIError && error.body?.code === SESSION_UNREADABLE && error.statusCode >= 500)
		throw databaseAway(error);
	if (!(error instanceof APIError)) throw error;
	log.debug("sign-in", { severity: "error", detail: error.message });
}

export async function rethrowAnswerError(answer: Response): Promise<Response> {
	if (answer.status < 500) return answer;
	const said: unknown = await answer
		.clone()
		.json()
		.catch(() => null);
	if ((said as { code?: unknown } | null)?.code === SESSION_UNREADABLE) throw databaseAway(said);
	return answer;
}

/**
 * Redirects to the sign-in page if an identity provider's response identifies no person. Without this the library's
 * exception would be logged as a bug.
 */
function failingProviders(log: Log): BetterAuthPlugin {
	return {
		id: "failing-providers",
		init: ({ socialProviders }) => ({
			context: {
				socialProviders: socialProviders.map((provider) => ({
					...provider,
					getUserInfo: (token) =>
						provider.getUserInfo(token).catch((error: unknown) => {
							log.info("a sign-in provider did not identify the person", { provider: provider.id, error });
							return null;
						}),
				})),
			},
		}),
	};
}

function socialProviders({ signIn: { github, google } }: Pick<Config, "signIn">) {
	return { ...(github === null ? {} : { github }), ...(google === null ? {} : { google }) };
}

const UNASKED = /^\/(callback|company|oauth2|sign-in\/social|sign-in\/oauth2|one-tap|sso|id-token)/;

/**
 * Checks that a session may begin at this path. Operators must use password and second factor, so sign-ins by an
 * identity provider are refused.
 */
async function mayBegin(statements: Statements, userId: string, path: string | undefined): Promise<boolean> {
	if (path === undefined || !UNASKED.test(path)) return true;
	return (await statements`select 1 from console_user where id = ${userId} and operator`).length === 0;
}
