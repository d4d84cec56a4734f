import type { BetterAuthPlugin, GenericEndpointContext } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware, getSessionFromCtx } from "better-auth/api";
import { setSessionCookie } from "better-auth/cookies";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import { isMailAddress } from "../../base/mail-address.ts";
import type { Statements } from "../../db/statements.ts";
import { createOneTimeValues, isPagePath, type SignIn, textField } from "../sign-in/auth-request.ts";
import { signInError } from "../sign-in/sign-in-error.ts";
import type { CompanyOidc, IdTokenClaims, OidcClient, OidcSignIn } from "./company-oidc.ts";
import { type Company, decryptClientSecret, findCompany, findOrCreatePerson } from "./company-store.ts";

const VALID_MINUTES = 10;
const CALLBACK = "/company/callback";

const FOR_COMPANY_SESSIONS =
	/^\/(get-session|sign-out|sign-in\/.+|passkey\/sign-in-.+|sign-up\/email|verify-email|request-password-reset|reset-password|company\/.+|callback\/.+|error|ok)$/;

/** State of a single sign-on in progress: stored encrypted and used once. */
interface Kept extends OidcSignIn {
	readonly accountId: string;
	readonly revision: string;
	readonly next: string;
}

export function companySignInPlugin(
	{ statements, log, origin, secret }: SignIn<"statements" | "log" | "origin" | "secret">,
	oidc: CompanyOidc,
) {
	const journeys = createOneTimeValues(statements, { cookie: "company", minutes: VALID_MINUTES });

	const clientOf = async (company: Company): Promise<OidcClient> => ({
		issuer: company.issuer,
		clientId: company.clientId,
		clientSecret: await decryptClientSecret(company, secret),
		redirectUri: `${origin}/api/auth${CALLBACK}`,
	});

	/** Returns the stored state. Undefined if used or expired, or if the browser or the company's settings differ. */
	async function journeyOf(ctx: GenericEndpointContext, query: URLSearchParams) {
		const value = await journeys.take(ctx, query.get("state") ?? "");
		if (value === undefined) return undefined;
		const kept = JSON.parse(await symmetricDecrypt({ key: secret, data: value })) as Kept;
		const company = await findCompany(statements, { accountId: kept.accountId });
		return company?.revision === kept.revision && company.verifiedAtMs !== null ? { kept, company } : undefined;
	}

	return {
		id: "company",
		endpoints: {
			/** Body: `email`, `next` (page after the sign-in). Error NO_COMPANY if no company has proved the domain. */
			beginCompany: createAuthEndpoint("/company/begin", { method: "POST" }, async (ctx) => {
				const email = textField(ctx.body, "email").trim().toLowerCase();
				const domain = email.slice(email.lastIndexOf("@") + 1);
				const company = isMailAddress(email) ? await findCompany(statements, { domain }) : undefined;
				if (company === undefined) throw signInError("NO_COMPANY", "No company sign-in is set up for this address.");
				const { url, journey } = await oidc.begin(await clientOf(company), email).catch((error: unknown) => {
					log.info("a company's sign-in cannot begin", { account: company.accountId, error });
					throw signInError("COMPANY_AWAY", "Your company's sign-in is not responding correctly. Try again later.");
				});
				const next = textField(ctx.body, "next");
				const { accountId, revision } = company;
				const kept: Kept = { ...journey, accountId, revision, next: isPagePath(next) ? next : "/overview" };
				await journeys.keep(ctx, journey.state, await symmetricEncrypt({ key: secret, data: JSON.stringify(kept) }));
				return ctx.json({ url });
			}),
			endCompany: createAuthEndpoint(CALLBACK, { method: "GET" }, async (ctx) => {
				const query = new URL(ctx.request?.url ?? origin).searchParams;
				const found = await journeyOf(ctx, query);
				const away = (why: string) => ctx.redirect(`${origin}/sign-in?company=${why}`);
				if (found === undefined) throw away("stale");
				const { kept, company } = found;
				const claims = await oidc.finish(await clientOf(company), kept, query).catch((error: unknown) => {
					// The page must not show the provider's error text, so the log gets the reason.
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

/** Opens a session that reaches only the company's account and ends when the company's sign-in settings change. */
async function signIn(statements: Statements, ctx: GenericEndpointContext, company: Company, claims: IdTokenClaims) {
	const { internalAdapter } = ctx.context;
	const entered = await findOrCreatePerson(statements, company, claims, async (person) => {
		return (await internalAdapter.createUser({ ...person, emailVerified: true })).id;
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
	throw signInError(
		"OWN_SIGN_IN_REQUIRED",
		"These settings belong to you, not to your company. Sign in without single sign-on to change them.",
		{ status: "FORBIDDEN" },
	);
});
