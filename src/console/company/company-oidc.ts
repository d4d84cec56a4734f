import type { Configuration, IDToken } from "openid-client";
import { isLabel } from "../../keys/key-settings.ts";
import { createPublicFetch, type FetchInit } from "./public-fetch.ts";

export interface Journey {
	readonly state: string;
	readonly nonce: string;
	readonly verifier: string;
}

export interface Client {
	readonly issuer: string;
	readonly clientId: string;
	readonly clientSecret: string;
	readonly redirectUri: string;
}

export type Claims = Readonly<Record<string, unknown>> & { readonly sub: string };

export type CompanyOidc = ReturnType<typeof createCompanyOidc>;

const TIMEOUT_S = 10;
/** Longest `sub` claim, by OpenID Connect Core, section 2. */
const SUBJECT_CHARS_MAX = 255;

/**
 * OpenID Connect's code flow with PKCE, state and nonce. The library is loaded on first use, since few people sign in
 * this way. The provider's metadata is fetched each time, so a withdrawn signing key is refused at once.
 */
export function createCompanyOidc(options: { production: boolean }) {
	const publicFetch = createPublicFetch(options);

	async function discover(client: Client): Promise<{ oidc: typeof import("openid-client"); config: Configuration }> {
		const oidc = await import("openid-client");
		const config = await oidc.discovery(new URL(client.issuer), client.clientId, client.clientSecret, undefined, {
			[oidc.customFetch]: (url, init) => publicFetch(url, init as FetchInit),
			timeout: TIMEOUT_S,
			// Makes the library verify token signatures: TLS alone does not authenticate the token.
			execute: [oidc.enableNonRepudiationChecks, ...(options.production ? [] : [oidc.allowInsecureRequests])],
		});
		return { oidc, config };
	}

	return {
		async begin(client: Client, loginHint: string): Promise<{ url: string; journey: Journey }> {
			const { oidc, config } = await discover(client);
			const journey = {
				state: oidc.randomState(),
				nonce: oidc.randomNonce(),
				verifier: oidc.randomPKCECodeVerifier(),
			};
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
		/** Claims of a token that the provider issued for this client and this sign-in. Throws for any other token. */
		async finish(client: Client, journey: Journey, query: URLSearchParams): Promise<Claims> {
			const { oidc, config } = await discover(client);
			// Uses the configured origin, whatever host the request names.
			const tokens = await oidc.authorizationCodeGrant(config, new URL(`${client.redirectUri}?${query}`), {
				pkceCodeVerifier: journey.verifier,
				expectedState: journey.state,
				expectedNonce: journey.nonce,
				idTokenExpected: true,
			});
			const claims = tokens.claims() as IDToken;
			// A longer value does not fit into the index of identities; control characters do not fit into a text column.
			if (!isLabel(claims.sub, SUBJECT_CHARS_MAX)) throw new Error("the id of a person is none");
			// Some providers put the email address into the token, others only into the userinfo response.
			if (claims.email !== undefined || config.serverMetadata().userinfo_endpoint === undefined) return claims;
			const asked = await oidc.fetchUserInfo(config, tokens.access_token, claims.sub);
			return { ...asked, ...claims };
		},
	};
}
