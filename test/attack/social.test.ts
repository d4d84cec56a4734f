import { expect, test } from "bun:test";
import { createOperator } from "../../src/console/operator/operator-admin.ts";
import { newPerson, operator, PASSWORD, PERSON_ENV, type Person, signedUp } from "../console/person.ts";
import { atEnd } from "../support/at-end.ts";
import { withChat } from "../support/service.ts";

/** Sign-in by a simulated provider, with unverified addresses, forged callbacks and forged tokens. */

const { service } = await withChat({
	env: {
		...PERSON_ENV,
		...{ NODE_ENV: "production", KEY_PEPPER: "p".repeat(64), CONSOLE_SECRET: "s".repeat(64) },
		...{ GITHUB_CLIENT_ID: "client", GITHUB_CLIENT_SECRET: "secret" },
		...{ GOOGLE_CLIENT_ID: "client", GOOGLE_CLIENT_SECRET: "secret" },
	},
});

type Provider = "github" | "google";
let present = { id: "1", email: "", verified: true };
const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const lasting = () => ({ iat: Math.floor(Date.now() / 1000), exp: Math.floor(Date.now() / 1000) + 600 });

const keys = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
const strangers = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
const jwk = { ...(await crypto.subtle.exportKey("jwk", keys.publicKey)), kid: "one", alg: "ES256", use: "sig" };
async function idToken(claims: object, by: CryptoKeyPair | "nobody" = keys): Promise<string> {
	const head = by === "nobody" ? { alg: "none" } : { alg: "ES256", kid: "one" };
	const signed = `${base64(head)}.${base64({ iss: "https://accounts.google.com", aud: "client", ...lasting(), ...claims })}`;
	if (by === "nobody") return `${signed}.`;
	const signature = await crypto.subtle.sign(
		{ name: "ECDSA", hash: "SHA-256" },
		by.privateKey,
		new TextEncoder().encode(signed),
	);
	return `${signed}.${Buffer.from(signature).toString("base64url")}`;
}
const claimsOf = ({ id, email, verified }: typeof present) => ({
	sub: id,
	email,
	email_verified: verified,
	name: "Some Body",
});

/** Replaces the provider's answers; undefined for its usual answer. */
let says: (place: string) => Response | undefined = () => undefined;
const real = globalThis.fetch;
globalThis.fetch = Object.assign(
	async (input: string | URL | Request, init?: RequestInit) => {
		const { hostname, pathname } = new URL(input instanceof Request ? input.url : input);
		const { id, email, verified } = present;
		const instead = says(`${hostname}${pathname}`);
		if (instead !== undefined) return instead;
		if (hostname === "github.com")
			return Response.json({ access_token: "x", token_type: "bearer", scope: "user:email" });
		if (hostname === "oauth2.googleapis.com")
			return Response.json({ access_token: "x", token_type: "bearer", id_token: await idToken(claimsOf(present)) });
		if (hostname === "www.googleapis.com") return Response.json({ keys: [jwk] });
		if (hostname !== "api.github.com") return real(input, init);
		if (pathname === "/user/emails") return Response.json([{ email, primary: true, verified }]);
		return Response.json({ id, login: "somebody", name: "Some Body", email });
	},
	{ preconnect: real.preconnect },
);
atEnd(() => {
	globalThis.fetch = real;
});

async function begin(person: Person, provider: Provider, more: object = {}): Promise<string> {
	const { body } = await person.send("POST", "/api/auth/sign-in/social", {
		provider,
		callbackURL: "/overview",
		...more,
	});
	return body.url === undefined ? "" : (new URL(body.url).searchParams.get("state") ?? "");
}
const comeBack = (person: Person, provider: Provider, state: string) =>
	person.get(`/api/auth/callback/${provider}?code=x&state=${encodeURIComponent(state)}`);
async function comeIn(provider: Provider, who: Partial<typeof present> & { email: string }) {
	present = { id: crypto.randomUUID(), verified: true, ...who };
	const person = newPerson(service, who.email);
	const answer = await comeBack(person, provider, await begin(person, provider));
	return { person, location: answer.headers.get("location") ?? "", me: await person.get("/api/console/me") };
}
const isOurs = (location: string) => new URL(location, service.url).origin === new URL(service.url).origin;

for (const provider of ["github", "google"] as const) {
	test(`${provider}: a sign-in with an unverified address opens no account`, async () => {
		const victim = await signedUp(service);
		const attacker = await comeIn(provider, { email: victim.email, verified: false });
		expect([attacker.me.status, isOurs(attacker.location)]).toEqual([401, true]);
		for (const email of [victim.email.toUpperCase(), `${victim.email} `, `${victim.email}\0`, "", "no address"]) {
			const { me } = await comeIn(provider, { email, verified: false });
			expect([email, me.status]).toEqual([email, 401]);
		}
		const stranger = await comeIn(provider, { email: `${crypto.randomUUID()}@example.com`, verified: false });
		expect(stranger.me.status).toBe(401);
		const [joined] = await service.db.sql`
			select count(*)::int as count from auth_account a join console_user u on u.id = a.user_id
			where u.email = ${victim.email} and a.provider_id <> 'credential'`;
		expect(joined?.count).toBe(0);
		const owner = await comeIn(provider, { email: victim.email });
		expect(owner.me.body.account.id).toBe(victim.accountId);
	});

	test(`${provider}: the address's owner takes over a sign-up that proved no address`, async () => {
		const email = `${crypto.randomUUID()}@example.com`;
		const taker = newPerson(service, email);
		await taker.send("POST", "/api/auth/sign-up/email", {
			name: "Taker",
			email,
			password: PASSWORD,
			next: "/overview",
		});
		const owner = await comeIn(provider, { email });
		expect(owner.me.status).toBe(200);
		const signIn = await taker.send("POST", "/api/auth/sign-in/email", { email, password: PASSWORD });
		expect([signIn.status, (await taker.get("/api/console/me")).status]).toEqual([401, 401]);
	});

	test(`${provider}: a callback works once, only in the browser that began the sign-in`, async () => {
		const victim = newPerson(service);
		present = { id: crypto.randomUUID(), email: `${crypto.randomUUID()}@example.com`, verified: true };
		const attacker = newPerson(service);
		const state = await begin(attacker, provider);
		// If this worked, the attacker's link would sign the victim in as the attacker.
		const lured = await comeBack(victim, provider, state);
		expect([(await victim.get("/api/console/me")).status, isOurs(lured.headers.get("location") ?? "")]).toEqual([
			401,
			true,
		]);
		const again = await begin(attacker, provider);
		const jar = new Map(attacker.cookies);
		await comeBack(attacker, provider, again);
		expect((await attacker.get("/api/console/me")).status).toBe(200);
		const second = newPerson(service);
		for (const [name, value] of jar) second.cookies.set(name, value);
		await comeBack(second, provider, again);
		expect((await second.get("/api/console/me")).status).toBe(401);
		for (const odd of ["", "x", "__proto__", `${again}x`, "%00", "x".repeat(5_000)]) {
			const { status, headers } = await comeBack(newPerson(service), provider, odd);
			expect([odd, status < 500, isOurs(headers.get("location") ?? "/")]).toEqual([odd, true, true]);
		}
		const all = await Promise.all(Array.from({ length: 8 }, () => comeBack(newPerson(service), provider, again)));
		for (const answer of all) expect(answer.headers.getSetCookie().join()).not.toContain("session_token=ey");
	});

	test(`${provider}: a sign-in never redirects to another site`, async () => {
		const evil = [
			...["https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example"],
			...["javascript:alert(1)", "http:evil.example", `${service.url}@evil.example`, `${service.url}.evil.example/`],
		];
		for (const name of ["callbackURL", "errorCallbackURL", "newUserCallbackURL"])
			for (const address of evil) {
				const person = newPerson(service);
				present = { id: crypto.randomUUID(), email: `${crypto.randomUUID()}@example.com`, verified: true };
				const state = await begin(person, provider, { [name]: address });
				const good = state === "" ? undefined : await comeBack(person, provider, state);
				const denied = `/api/auth/callback/${provider}?error=access_denied&state=${state}`;
				for (const answer of [good, state === "" ? undefined : await person.get(denied)]) {
					const location = answer?.headers.get("location") ?? "/";
					expect([name, address, isOurs(location)]).toEqual([name, address, true]);
				}
			}
	});
}

test("social sign-in works for customers, not for operators", async () => {
	const customer = await signedUp(service);
	const known = await comeIn("github", { email: customer.email });
	expect([known.location, known.me.status]).toEqual(["/overview", 200]);
	const fresh = { id: crypto.randomUUID(), email: `${crypto.randomUUID()}@example.com` };
	const early = await comeIn("github", fresh);
	expect(early.me.status).toBe(200);

	// The provider does not check this service's second factor.
	const boss = await operator(service);
	const refused = await comeIn("github", { email: boss.email });
	expect([refused.me.status, refused.person.cookies.has("tollgate.session_token")]).toEqual([401, false]);
	expect(refused.location).toContain("error");
	expect((await createOperator(service.db.statements, fresh.email)).token).not.toBeNull();
	expect((await early.person.get("/api/console/me")).status).toBe(401);
	expect((await comeIn("github", fresh)).me.status).toBe(401);
});

test("a social sign-in accepts only recent tokens issued for this client", async () => {
	const victim = await signedUp(service);
	const who = { sub: crypto.randomUUID(), email: victim.email, email_verified: true, name: "Some Body" };
	const forged = {
		unsigned: await idToken(who, "nobody"),
		"signed by a stranger": await idToken(who, strangers),
		"for another client": await idToken({ ...who, aud: "another" }),
		"by another service": await idToken({ ...who, iss: "https://evil.example" }),
		"that is over": await idToken({ ...who, iat: 1_700_000_000, exp: 1_700_000_600 }),
		"without proof of the address": await idToken({ ...who, email_verified: false }),
		"that is none": "x.y.z",
	};
	for (const [name, token] of Object.entries(forged)) {
		const person = newPerson(service);
		const { status } = await person.send("POST", "/api/auth/sign-in/social", {
			provider: "google",
			idToken: { token },
		});
		expect([name, status < 500, (await person.get("/api/console/me")).status]).toEqual([name, true, 401]);
	}
	const person = newPerson(service);
	await person.send("POST", "/api/auth/sign-in/social", { provider: "google", idToken: { token: await idToken(who) } });
	expect((await person.get("/api/console/me")).status).toBe(200);
});

test("a failing sign-in provider sends the browser back to this site without a 5xx", async () => {
	const failures: Record<string, () => Response> = {
		"a failure that is a success": () => Response.json({ message: "rate limit" }),
		"no JSON": () => new Response("<html>"),
		nothing: () => new Response(null, { status: 204 }),
		null: () => Response.json(null),
		"a refusal": () => Response.json({ message: "no" }, { status: 403 }),
		away: () => {
			throw new TypeError("fetch failed");
		},
	};
	for (const [name, fail] of Object.entries(failures))
		for (const place of ["github.com/login/oauth/access_token", "api.github.com/user", "api.github.com/user/emails"]) {
			says = (asked) => (asked === place ? fail() : undefined);
			present = { id: crypto.randomUUID(), email: `${crypto.randomUUID()}@example.com`, verified: true };
			const person = newPerson(service);
			const answer = await comeBack(person, "github", await begin(person, "github"));
			says = () => undefined;
			const location = answer.headers.get("location") ?? "";
			expect([name, place, answer.status, isOurs(location)]).toEqual([name, place, 302, true]);
		}
});
