import type { BetterAuthPlugin, GenericEndpointContext } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware, getSessionFromCtx } from "better-auth/api";
import { expireCookie, setSessionCookie } from "better-auth/cookies";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import type { Log } from "../../base/log.ts";
import { isMailAddress } from "../../base/mail-address.ts";
import type { Statements } from "../../db/statements.ts";
import { isPersonName } from "../sign-in/person-name.ts";
import { signInError } from "../sign-in/sign-in-error.ts";
import type { Claims, Client, CompanyOidc, Journey } from "./company-oidc.ts";
import { enter, type Refusal } from "./company-people.ts";
import { type Company, findCompany, secretOf } from "./company-store.ts";

interface CompanyDeps {
	readonly statements: Statements;
	readonly log: Log;
	readonly oidc: CompanyOidc;
}

interface CompanyOptions {
	readonly origin: string;
	readonly secret: string;
}

/** Cookie that ties a sign-in to its browser: a link sent by another person does not carry it. */
const COOKIE = "company";
const VALID_MINUTES = 10;
const NEXT_CHARS_MAX = 500;
const CALLBACK = "/company/callback";
const NAMELESS = "New member";

/**
 * Endpoints of the sign-in library that a company's session may use. Those of the person's own account need the
 * person's own sign-in.
 */
const FOR_COMPANY_SESSIONS =
	/^\/(get-session|sign-out|sign-in\/.+|passkey\/sign-in-.+|sign-up\/email|verify-email|request-password-reset|reset-password|company\/.+|callback\/.+|error|ok)$/;

/** State of a sign-in, stored encrypted, for one use. */
interface Kept extends Journey {
	readonly accountId: string;
	readonly revision: string;
	readonly browserHash: string;
	readonly next: string;
}

/** Sign-in by a company's own OpenID provider (`company-oidc.ts`), for one account (`company-people.ts`). */
export function companySignIns(deps: CompanyDeps, options: CompanyOptions) {
	const { statements, log, oidc } = deps;
	const { origin, secret } = options;

	const clientOf = async (company: Company): Promise<Client> => ({
		issuer: company.issuer,
		clientId: company.clientId,
		clientSecret: await secretOf(company, secret),
		redirectUri: `${origin}/api/auth${CALLBACK}`,
	});

	/** Undefined if the state is used, expired or from another browser, or if the company's settings changed. */
	async function journeyOf(ctx: GenericEndpointContext, query: URLSearchParams) {
		const [row] = await statements<{ value: string }>`
			delete from verification where identifier = ${idOf(query.get("state") ?? "")} and expires_at > clock_timestamp() returning value`;
		const cookie = ctx.context.createAuthCookie(COOKIE);
		const browser = await ctx.getSignedCookie(cookie.name, ctx.context.secret);
		if (row === undefined || typeof browser !== "string") return undefined;
		expireCookie(ctx, cookie);
		const kept = JSON.parse(await symmetricDecrypt({ key: secret, data: row.value })) as Kept;
		const company = await findCompany(statements, { accountId: kept.accountId });
		const isSame = company?.revision === kept.revision && company.verifiedAtMs !== null;
		return isSame && hashOf(browser) === kept.browserHash ? { kept, company } : undefined;
	}

	return {
		id: "company",
		endpoints: {
			/**
			 * Body: `email`, `next`. Returns the provider's address. NO_COMPANY if the address's company has no such sign-in.
			 */
			beginCompany: createAuthEndpoint("/company/begin", { method: "POST" }, async (ctx) => {
				const email = fieldOf(ctx.body, "email").trim().toLowerCase();
				const domain = email.slice(email.lastIndexOf("@") + 1);
				const company = isMailAddress(email) ? await findCompany(statements, { domain }) : undefined;
				if (company === undefined) throw signInError("NO_COMPANY", "No company signs in here with this address.");
				const { url, journey } = await oidc.begin(await clientOf(company), email).catch((error: unknown) => {
					log.info("a company's sign-in cannot begin", { account: company.accountId, error });
					throw signInError("COMPANY_AWAY", "Your company's sign-in does not answer as it should. Try again later.");
				});
				const browser = randomText();
				const next = placeOf(fieldOf(ctx.body, "next"));
				const { accountId, revision } = company;
				const kept: Kept = { ...journey, accountId, revision, browserHash: hashOf(browser), next };
				const value = await symmetricEncrypt({ key: secret, data: JSON.stringify(kept) });
				await statements`
					insert into verification (id, identifier, value, expires_at) values (${crypto.randomUUID()}, ${idOf(journey.state)}, ${value},
						clock_timestamp() + make_interval(mins => ${VALID_MINUTES}::integer))`;
				const cookie = ctx.context.createAuthCookie(COOKIE, { maxAge: VALID_MINUTES * 60 });
				await ctx.setSignedCookie(cookie.name, browser, ctx.context.secret, cookie.attributes);
				return ctx.json({ url });
			}),
			/** The provider's callback. Redirects to the page, or to the sign-in page with the reason of the refusal. */
			endCompany: createAuthEndpoint(CALLBACK, { method: "GET" }, async (ctx) => {
				const query = new URL(ctx.request?.url ?? origin).searchParams;
				const found = await journeyOf(ctx, query);
				const away = (why: string) => ctx.redirect(`${origin}/sign-in?company=${why}`);
				if (found === undefined) throw away("stale");
				const { kept, company } = found;
				const claims = await oidc.finish(await clientOf(company), kept, query).catch((error: unknown) => {
					// The provider's text is not shown; the token's fault is logged.
					log.info("a company's sign-in was refused", { account: company.accountId, error });
					return undefined;
				});
				if (claims === undefined) throw away("failed");
				const refusal = await signIn(statements, ctx, company, claims);
				if (refusal === undefined) throw ctx.redirect(`${origin}${kept.next}`);
				log.info("a company's sign-in was refused", { account: company.accountId, refusal });
				throw away(refusal);
			}),
		},
		hooks: {
			before: [
				{ matcher: ({ path }) => path !== undefined && !FOR_COMPANY_SESSIONS.test(path), handler: ownSignInOnly },
			],
		},
	} satisfies BetterAuthPlugin;
}

/** The session opens this account only, while the company's settings are unchanged. */
async function signIn(
	statements: Statements,
	ctx: GenericEndpointContext,
	company: Company,
	claims: Claims,
): Promise<Refusal | undefined> {
	const { internalAdapter } = ctx.context;
	const entered = await enter(statements, company, claims, async ({ email, name }) => {
		const made = await internalAdapter.createUser({
			email,
			name: isPersonName(name) ? name : NAMELESS,
			emailVerified: true,
		});
		return made.id;
	});
	if (typeof entered === "string") return entered;
	const { userId } = entered;
	const session = await internalAdapter.createSession(userId, false, { companyRevision: company.revision });
	const user = await internalAdapter.findUserById(userId);
	if (user !== null) await setSessionCookie(ctx, { session, user });
	return undefined;
}

const ownSignInOnly = createAuthMiddleware(async (ctx) => {
	const session = await getSessionFromCtx(ctx);
	if (session?.session.companyRevision == null) return;
	throw signInError("OWN_SIGN_IN_REQUIRED", "This is your own, not your company's: sign in without it.", {
		status: "FORBIDDEN",
	});
});

/** Accepts paths of this site only. */
const placeOf = (next: string) => (/^\/(?![/\\])/.test(next) && next.length <= NEXT_CHARS_MAX ? next : "/overview");
const hashOf = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");
const idOf = (state: string) => `company:${hashOf(state)}`;
const randomText = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");

function fieldOf(body: unknown, name: string): string {
	const value = typeof body === "object" && body !== null ? (body as Record<string, unknown>)[name] : undefined;
	return typeof value === "string" && !value.includes("\0") ? value : "";
}
