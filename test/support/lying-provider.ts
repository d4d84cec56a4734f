import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { localServer } from "./at-end.ts";

/** Claims of the provider about the person; tests change them to false ones. */
export interface ProviderClaims {
	claims: JWTPayload;
	foreignKey?: boolean;
	unsigned?: boolean;
	/** Response of the token endpoint, in place of an id token. */
	answer?: Response;
}

/** An OpenID provider that signs any claims. `login` returns a person's claims; no login page is shown. */
export async function startLyingProvider(login: (sent: URLSearchParams) => JWTPayload = () => ({})) {
	const [own, foreign] = [await generateKeyPair("RS256"), await generateKeyPair("RS256")];
	const jwk = { ...(await exportJWK(own.publicKey)), kid: "1", alg: "RS256", use: "sig" };
	const tellings = new Map<string, ProviderClaims>();
	const asked: URLSearchParams[] = [];
	function tell(told: ProviderClaims): string {
		const code = crypto.randomUUID();
		tellings.set(code, told);
		return code;
	}
	const server: Bun.Server<undefined> = localServer(async (request): Promise<Response> => {
		const { pathname } = new URL(request.url);
		if (pathname === "/.well-known/openid-configuration")
			return Response.json({
				issuer,
				authorization_endpoint: `${issuer}/auth`,
				token_endpoint: `${issuer}/token`,
				jwks_uri: `${issuer}/jwks`,
				response_types_supported: ["code"],
				subject_types_supported: ["public"],
				id_token_signing_alg_values_supported: ["RS256"],
				code_challenge_methods_supported: ["S256"],
			});
		if (pathname === "/auth") {
			const sent = new URL(request.url).searchParams;
			const on = new URL(sent.get("redirect_uri") ?? "");
			on.search = new URLSearchParams({
				code: tell({ claims: login(sent) }),
				state: sent.get("state") ?? "",
			}).toString();
			return Response.redirect(on.href, 302);
		}
		if (pathname === "/jwks") return Response.json({ keys: [jwk] });
		if (pathname !== "/token") return new Response(null, { status: 404 });
		const form = new URLSearchParams(await request.text());
		asked.push(form);
		const told = tellings.get(form.get("code") ?? "");
		if (told === undefined) return Response.json({ error: "invalid_grant" }, { status: 400 });
		if (told.answer !== undefined) return told.answer;
		const header = { alg: "RS256", kid: "1" };
		const signed = new SignJWT({ exp: Math.floor(Date.now() / 1000) + 300, ...told.claims })
			.setProtectedHeader(header)
			.setIssuedAt();
		let id_token = await signed.sign(told.foreignKey ? foreign.privateKey : own.privateKey);
		if (told.unsigned) {
			const none = Buffer.from('{"alg":"none"}').toString("base64url");
			id_token = `${none}.${id_token.split(".")[1]}.`;
		}
		return Response.json({ access_token: "a", token_type: "Bearer", id_token });
	});
	const issuer: string = `http://127.0.0.1:${server.port}`;
	return { issuer, asked, tell };
}
