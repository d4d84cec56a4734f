import type { Configuration, IDToken } from "openid-client";
import { isLabel } from "../../keys/key-settings.ts";
import { pinnedRequest, type ResolveHost, resolveByDns, resolvePublicHost } from "../notices/public-request.ts";

interface FetchInit {
	readonly method?: string;
	readonly headers?: Readonly<Record<string, string>>;
	readonly body?: unknown;
	readonly signal?: AbortSignal | undefined;
}
type PublicFetch = (url: string, init: FetchInit) => Promise<Response>;

const DEADLINE_MS = 10_000;
/** Longest response with a provider's keys or metadata; usual ones have about 10 KB. */
const ANSWER_BYTES_MAX = 512 * 1024;
const STATUS_MIN = 200;
const STATUS_MAX = 599;
const PROBLEMS = {
	address_not_public: "the address is not public",
	name_not_found: "its name leads nowhere",
	timeout: "no answer in time",
} as const;

/**
 * `fetch` for addresses that customers enter. In production they must resolve to the public internet. The connection
 * goes to the address that was checked, redirects are not followed, and the response has a size limit and a deadline.
 */
export function createPublicFetch(options: { production: boolean }, resolve: ResolveHost = resolveByDns): PublicFetch {
	return async (address, { method = "GET", headers = {}, body, signal }) => {
		const late = AbortSignal.timeout(DEADLINE_MS);
		const deadline = signal === undefined ? late : AbortSignal.any([signal, late]);
		const found = await resolvePublicHost(address, options.production, resolve, deadline);
		if ("problem" in found) throw new Error(PROBLEMS[found.problem]);
		const bytes = body === undefined || body === null ? undefined : String(body);
		return new Promise<Response>((answer, fail) => {
			const sending = pinnedRequest(address, found.addresses, {
				method,
				signal: deadline,
				headers: { ...headers, ...(bytes === undefined ? {} : { "content-length": String(Buffer.byteLength(bytes)) }) },
			});
			sending.on("error", fail);
			sending.on("response", (response) => {
				const parts: Buffer[] = [];
				let size = 0;
				response.on("data", (part: Buffer) => {
					size += part.length;
					if (size > ANSWER_BYTES_MAX) sending.destroy(new Error("the answer is too large"));
					else parts.push(part);
				});
				response.on("error", fail);
				response.on("end", () => {
					const status = response.statusCode ?? 0;
					// `new Response` throws for this status, and an exception in this callback would end the process.
					if (status < STATUS_MIN || status > STATUS_MAX) return fail(new Error("a status that there is not"));
					const kept = new Headers();
					for (const name of ["content-type", "date", "www-authenticate", "dpop-nonce"]) {
						const value = response.headers[name];
						if (typeof value === "string") kept.set(name, value);
					}
					const empty = status === 204 || status === 304;
					answer(new Response(empty ? null : Buffer.concat(parts), { status, headers: kept }));
				});
			});
			sending.end(bytes);
		});
	};
}

export interface OidcSignIn {
	readonly state: string;
	readonly nonce: string;
	readonly verifier: string;
}

export interface OidcClient {
	readonly issuer: string;
	readonly clientId: string;
	readonly clientSecret: string;
	readonly redirectUri: string;
}

export type IdTokenClaims = Readonly<Record<string, unknown>> & { readonly sub: string };

export type CompanyOidc = ReturnType<typeof createCompanyOidc>;

const TIMEOUT_S = 10;
/** Longest `sub` claim, by OpenID Connect Core, section 2. */
const SUBJECT_CHARS_MAX = 255;

/**
 * OpenID Connect's code flow with PKCE, state and nonce. The library is loaded on first use, since few people sign in
 * this way. The provider's metadata is fetched each time, so that a withdrawn signing key is refused at once.
 */
export function createCompanyOidc(options: { production: boolean }) {
	const publicFetch = createPublicFetch(options);

	async function discover(
		client: OidcClient,
	): Promise<{ oidc: typeof import("openid-client"); config: Configuration }> {
		const oidc = await import("openid-client");
		const config = await oidc.discovery(new URL(client.issuer), client.clientId, client.clientSecret, undefined, {
			[oidc.customFetch]: (url, init) => publicFetch(url, init as FetchInit),
			timeout: TIMEOUT_S,
			// The library verifies the signatures of tokens only with this option. TLS alone does not authenticate a token.
			execute: [oidc.enableNonRepudiationChecks, ...(options.production ? [] : [oidc.allowInsecureRequests])],
		});
		return { oidc, config };
	}

	return {
		async begin(client: OidcClient, loginHint: string): Promise<{ url: string; journey: OidcSignIn }> {
			const { oidc, config } = await discover(client);
			const journey = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier: oidc.randomPKCECodeVerifier() };
			const url = oidc.buildAuthorizationUrl(config, {
				redirect_uri: client.redirectUri,
				scope: "openid email profile",
				state: journey.state,
				nonce: journey.nonce,
				code_challenge: await oidc.calculatePKCECodeChallenge(journey.verifier),
				code_challenge_method: "S256",
				login_hint: loginHint,
			});
			return { url: url.href, journey };
		},
		/** Claims of a token that the provider issued for this client and this sign-in. Throws for other tokens. */
		async finish(client: OidcClient, journey: OidcSignIn, query: URLSearchParams): Promise<IdTokenClaims> {
			const { oidc, config } = await discover(client);
			// Uses the configured origin, because the Host header of the request is the client's choice.
			const tokens = await oidc.authorizationCodeGrant(config, new URL(`${client.redirectUri}?${query}`), {
				pkceCodeVerifier: journey.verifier,
				expectedState: journey.state,
				expectedNonce: journey.nonce,
				idTokenExpected: true,
			});
			const claims = tokens.claims() as IDToken;
			// The database index of identities refuses longer ids, and text columns refuse control characters.
			if (!isLabel(claims.sub, SUBJECT_CHARS_MAX)) throw new Error("the id of a person is none");
			// Some providers put the address into the token, others only into the userinfo response.
			if (claims.email !== undefined || config.serverMetadata().userinfo_endpoint === undefined) return claims;
			const asked = await oidc.fetchUserInfo(config, tokens.access_token, claims.sub);
			return { ...asked, ...claims };
		},
	};
}
