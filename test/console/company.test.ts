import { expect, test } from "bun:test";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { JWTPayload } from "jose";
import { Provider } from "oidc-provider";
import { createPublicFetch } from "../../src/console/company/company-oidc.ts";
import { recheckDomains, verifyDomain } from "../../src/console/company/company-store.ts";
import { type ProviderClaims, startLyingProvider } from "../support/lying-provider.ts";
import { withService } from "../support/service.ts";
import { newPerson, PASSWORD, PERSON_ENV, type Person, signedUp } from "./person.ts";

const service = await withService({ env: PERSON_ENV });
const liar = await startLyingProvider();
const { statements, sql } = service.db;
const owner = await signedUp(service);
const DOMAIN = "works.example";
const SETTINGS = {
	...{ issuer: liar.issuer, clientId: "tollgate", clientSecret: "the client's secret", domain: DOMAIN },
	...{
		emailTrusted: false,
		roleClaim: "groups",
		roleValues: { builders: "developer", bosses: "admin" },
		required: false,
	},
	defaultRole: "viewer" as string | null,
};
const PATH = "/api/console/company-sign-in";
const proved = (accountId: string) =>
	verifyDomain(statements, accountId, async () => [["tollgate-domain=", await tokenOf(accountId)]]);
async function tokenOf(accountId: string): Promise<string> {
	const [row] = await sql`select domain_token from company_sign_in where account_id = ${accountId}`;
	return row?.domain_token;
}
const set = (more: Partial<typeof SETTINGS> = {}) => owner.send("PUT", PATH, { ...SETTINGS, ...more });
await set();
await proved(owner.accountId);

async function begin(person: Person, email = `ada@${DOMAIN}`): Promise<URLSearchParams> {
	const { status, body } = await person.send("POST", "/api/auth/company/begin", { email, next: "/keys" });
	expect([status, body.code]).toEqual([200, undefined]);
	return new URL(body.url).searchParams;
}
const claimsFor = (sent: URLSearchParams, more: JWTPayload = {}): JWTPayload => ({
	...{ iss: liar.issuer, aud: "tollgate", sub: "ada-1", nonce: sent.get("nonce") ?? "" },
	...{ email: `ada@${DOMAIN}`, email_verified: true, name: "Ada", ...more },
});
async function back(person: Person, query: Record<string, string>): Promise<string> {
	const answer = await person.fetch(`/api/auth/company/callback?${new URLSearchParams(query)}`);
	expect(answer.status).toBe(302);
	return (answer.headers.get("location") ?? "").replace(service.url, "");
}
async function signIn(person: Person, more: JWTPayload = {}, told: Partial<ProviderClaims> = {}): Promise<string> {
	const sent = await begin(person);
	return back(person, { code: liar.tell({ claims: claimsFor(sent, more), ...told }), state: sent.get("state") ?? "" });
}
const at = `account=${owner.accountId}`;
const meOf = async (person: Person) => (await person.get("/api/console/me")).body;

test("a company sign-in can map a claim's value only to a role that may be assigned", async () => {
	const before = (await owner.get(PATH)).body.settings;
	for (const value of ["builders", "", "two\nlines", "\u2028"])
		for (const role of ["owner", "none", 1, null, {}]) {
			const roleValues = { [value]: role } as unknown as typeof SETTINGS.roleValues;
			expect([value, role, (await set({ roleValues })).status]).toEqual([value, role, 400]);
		}
	expect((await owner.get(PATH)).body.settings).toEqual(before);
});

test("a company sign-in creates a member with the role of the claim", async () => {
	const listening = createServer().listen(0, "127.0.0.1");
	await once(listening, "listening");
	const issuer = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
	const idp = new Provider(issuer, {
		clients: [
			{ client_id: "real", client_secret: "x".repeat(40), redirect_uris: [`${service.url}/api/auth/company/callback`] },
		],
		claims: { email: ["email", "email_verified"], profile: ["name", "groups"] },
		pkce: { required: () => true },
		findAccount: (_ctx, id) => ({
			accountId: id,
			claims: () => ({
				sub: id,
				email: `${id}@real.example`,
				email_verified: true,
				name: "Real Person",
				groups: ["builders"],
			}),
		}),
	});
	listening.on("request", idp.callback());
	try {
		const boss = await signedUp(service);
		const settings = { ...SETTINGS, issuer, clientId: "real", clientSecret: "x".repeat(40) };
		expect((await boss.send("PUT", PATH, { ...settings, domain: "real.example" })).status).toBe(200);
		const rita = newPerson(service);
		const early = await rita.send("POST", "/api/auth/company/begin", { email: "rita@real.example", next: "/keys" });
		expect([early.status, early.body.code]).toEqual([400, "NO_COMPANY"]);
		await proved(boss.accountId);
		const { body } = await rita.send("POST", "/api/auth/company/begin", { email: "rita@real.example", next: "/keys" });
		let place = body.url as string;
		for (let step = 0; step < 12 && !place.startsWith(service.url); step++) {
			const form = /interaction/.test(place)
				? /consent/.test(await (await rita.fetch(place)).text())
					? "prompt=consent"
					: "prompt=login&login=rita&password=x"
				: undefined;
			const init =
				form === undefined
					? {}
					: { method: "POST", body: form, headers: { "content-type": "application/x-www-form-urlencoded" } };
			place = new URL((await rita.fetch(place, init)).headers.get("location") ?? "", place).href;
		}
		const answer = await rita.fetch(place);
		expect([answer.status, answer.headers.get("location")]).toEqual([302, `${service.url}/keys`]);
		const me = await meOf(rita);
		expect(me.user).toMatchObject({ email: "rita@real.example", name: "Real Person", emailVerified: true });
		expect(me.accounts).toMatchObject([{ id: boss.accountId, role: "developer" }]);
		expect((await rita.send("POST", "/api/console/keys", { name: "hers" })).status).toBe(200);
	} finally {
		listening.close();
		listening.closeAllConnections();
	}
});

test("a company sign-in's token works once, for its provider, client and browser", async () => {
	const refused: Record<string, Partial<ProviderClaims> & { claims?: JWTPayload }> = {
		"another issuer": { claims: { iss: "https://other.example" } },
		"another audience": { claims: { aud: "somebody-else" } },
		"several audiences without us": { claims: { aud: ["a", "b"] } },
		"another nonce": { claims: { nonce: "another" } },
		"no nonce": { claims: { nonce: undefined } },
		"too old": { claims: { exp: 1 } },
		"no subject": { claims: { sub: 5 as never } },
		"a key that is not its own": { foreignKey: true },
		"no signature": { unsigned: true },
		"no token": { answer: Response.json({ access_token: "a", token_type: "Bearer" }) },
		"an answer without end": {
			answer: new Response("x".repeat(600_000), { headers: { "content-type": "application/json" } }),
		},
		"another place": { answer: Response.redirect(`${liar.issuer}/token`, 307) },
	};
	for (const [what, { claims = {}, ...told }] of Object.entries(refused)) {
		const person = newPerson(service);
		const sent = await begin(person);
		const code = liar.tell({ claims: { ...claimsFor(sent), ...claims }, ...told });
		expect([what, await back(person, { code, state: sent.get("state") ?? "" })]).toEqual([
			what,
			"/sign-in?company=failed",
		]);
		expect((await person.get("/api/console/me")).status).toBe(401);
	}
	const [ann, eve] = [newPerson(service), newPerson(service)];
	const sent = await begin(ann);
	const state = sent.get("state") ?? "";
	expect(sent.get("code_challenge_method")).toBe("S256");
	const code = liar.tell({ claims: claimsFor(sent) });
	expect(await back(eve, { code, state })).toBe("/sign-in?company=stale");
	expect((await eve.get("/api/console/me")).status).toBe(401);
	expect(await back(ann, { code, state: "made up" })).toBe("/sign-in?company=stale");
	expect(await back(ann, { code, state })).toBe("/keys");
	expect(await back(ann, { code, state })).toBe("/sign-in?company=stale");
	// A browser must not be able to finish a sign-in that another browser began.
	const hers = await begin(eve);
	const second = await begin(ann);
	expect(await back(eve, { code: liar.tell({ claims: claimsFor(second) }), state: second.get("state") ?? "" })).toBe(
		"/sign-in?company=stale",
	);
	// A token of one sign-in must be refused in another one.
	const third = await begin(ann);
	expect(await back(ann, { code: liar.tell({ claims: claimsFor(hers) }), state: third.get("state") ?? "" })).toBe(
		"/sign-in?company=failed",
	);
	const fourth = await begin(ann);
	const good = { code: liar.tell({ claims: claimsFor(fourth) }), state: fourth.get("state") ?? "" };
	expect(await back(ann, good)).toBe("/keys");
	expect(await back(ann, good)).toBe("/sign-in?company=stale");
	const form = liar.asked.at(-1);
	const digest = new Bun.CryptoHasher("sha256").update(form?.get("code_verifier") ?? "").digest("base64url");
	expect(digest).toBe(fourth.get("code_challenge") ?? "");
	await sql`update session set created_at = created_at - interval '13 hours' where company_revision is not null`;
	expect((await ann.get("/api/console/me")).status).toBe(401);
	for (const next of ["//evil.example", "/\\evil.example", "https://evil.example"]) {
		const { body } = await ann.send("POST", "/api/auth/company/begin", { email: `ada@${DOMAIN}`, next });
		const way = new URL(body.url).searchParams;
		expect(await back(ann, { code: liar.tell({ claims: claimsFor(way) }), state: way.get("state") ?? "" })).toBe(
			"/overview",
		);
	}
});

test("a company sign-in accepts only verified addresses of its domain, no operators", async () => {
	const tried = async (more: JWTPayload) => signIn(newPerson(service), more);
	const why = (word: string) => `/sign-in?company=${word}`;
	expect(await tried({ sub: "x1", email: (await signedUp(service)).email })).toBe(why("other_domain"));
	for (const email of [
		`ada@sub.${DOMAIN}`,
		`ada@${DOMAIN}.evil.example`,
		`ada@evil.example@${DOMAIN}`,
		`${DOMAIN}`,
		undefined,
	])
		expect(await tried({ sub: "x1", email })).toBe(why("other_domain"));
	for (const email_verified of [false, undefined, "true"])
		expect(await tried({ sub: "x2", email: `eve@${DOMAIN}`, email_verified })).toBe(why("not_verified"));
	expect(await tried({ sub: "ada-1" })).toBe("/keys");
	// The provider has given this address to another of its users, whom the sign-in must refuse.
	expect(await tried({ sub: "ada-2" })).toBe(why("other_person"));
	await sql`insert into console_user (id, name, email, email_verified, operator) values
		('usr_op', 'Op', ${`op@${DOMAIN}`}, true, true), ('usr_un', 'Un', ${`un@${DOMAIN}`}, false, false)`;
	expect(await tried({ sub: "op", email: `op@${DOMAIN}` })).toBe(why("operator"));
	expect(await tried({ sub: "un", email: `un@${DOMAIN}` })).toBe(why("unproved"));
	await set({ defaultRole: null, clientSecret: null as never });
	expect(await tried({ sub: "new", email: `new@${DOMAIN}`, groups: ["strangers", "owner"] })).toBe(why("no_role"));
	await set({ clientSecret: null as never });
	const made = await sql`select email from console_user where email like ${`%@${DOMAIN}`} order by email`;
	expect(made.map(({ email }) => email)).toEqual([`ada@${DOMAIN}`, `op@${DOMAIN}`, `un@${DOMAIN}`]);
});

test("a company sign-in opens the company's account, not the person's own", async () => {
	const email = `eva@${DOMAIN}`;
	const own = await signedUp(service);
	await sql`update console_user set email = ${email} where email = ${own.email}`;
	await sql`insert into member (user_id, account_id, role) select id, ${owner.accountId}, 'viewer' from console_user where email = ${email}`;
	const eva = newPerson(service);
	expect(await signIn(eva, { sub: "eva", email, groups: ["builders", "bosses"] })).toBe("/keys");
	const me = await meOf(eva);
	expect(me.accounts).toMatchObject([{ id: owner.accountId, role: "admin" }]);
	expect((await eva.get(`/api/console/overview?account=${own.accountId}`)).status).toBe(404);
	for (const [method, path] of [
		["GET", "/sessions"],
		["POST", "/sessions/revoke-others"],
		["POST", "/reauthenticate"],
		["POST", "/invitations/accept"],
	] as const) {
		const path_ = `/api/console${path}`;
		const { status } =
			method === "GET"
				? await eva.get(path_)
				: await eva.send(method, path_, { password: PASSWORD, token: "x".repeat(30) });
		expect([path, status]).toEqual([path, 403]);
	}
	for (const path of ["/update-user", "/change-password", "/two-factor/enable"])
		expect(
			(
				await eva.send("POST", `/api/auth${path}`, {
					name: "X",
					password: PASSWORD,
					currentPassword: PASSWORD,
					newPassword: "another good one, long",
				})
			).body.code,
		).toBe("OWN_SIGN_IN_REQUIRED");
	expect((await eva.get("/api/auth/list-accounts")).status).toBe(403);
	// The claim lowers Eva's role, which withdraws her invitations. A claim never changes an owner's role.
	const friend = { email: "friend@elsewhere.example", role: "admin" };
	expect((await eva.send("POST", "/api/console/invitations", friend)).status).toBe(200);
	const invited = () => sql`select email from invitation where account_id = ${owner.accountId}`;
	expect(await invited()).toHaveLength(1);
	expect(await signIn(newPerson(service), { sub: "eva", email, groups: ["bosses"] })).toBe("/keys");
	expect(await invited()).toHaveLength(1);
	expect(await signIn(newPerson(service), { sub: "eva", email, groups: [] })).toBe("/keys");
	expect((await meOf(eva)).accounts).toMatchObject([{ role: "viewer" }]);
	expect(await invited()).toHaveLength(0);
	await sql`update member set role = 'owner' where account_id = ${owner.accountId} and user_id = ${me.user.id}`;
	expect(await signIn(newPerson(service), { sub: "eva", email, groups: ["builders"] })).toBe("/keys");
	expect((await meOf(eva)).accounts).toMatchObject([{ role: "owner" }]);
	await sql`update member set role = 'viewer' where account_id = ${owner.accountId} and user_id = ${me.user.id}`;

	// With required single sign-on, a password opens only the person's own account; owners are exempt.
	expect((await own.get(`/api/console/overview?${at}`)).status).toBe(200);
	await set({ required: true, clientSecret: null as never });
	expect((await own.get(`/api/console/overview?${at}`)).status).toBe(403);
	expect((await own.fetch(`/api/console/live?${at}`)).status).toBe(403);
	expect((await own.get(`/api/console/overview?account=${own.accountId}`)).status).toBe(200);
	expect((await eva.get("/api/console/overview")).status).toBe(200);
	expect((await owner.get("/api/console/overview")).status).toBe(200);
	await eva.send("POST", "/api/auth/sign-out");
	expect((await eva.get("/api/console/me")).status).toBe(401);
});

test("changed settings end company sessions; a new issuer needs a new secret", async () => {
	const ada = newPerson(service);
	expect(await signIn(ada)).toBe("/keys");
	expect(JSON.stringify((await owner.get(PATH)).body)).not.toContain(SETTINGS.clientSecret);
	const [row] = await sql`select client_secret from company_sign_in where account_id = ${owner.accountId}`;
	expect(row?.client_secret).not.toContain(SETTINGS.clientSecret);
	expect(JSON.stringify(await sql`select * from audit_event`)).not.toContain(SETTINGS.clientSecret);
	const elsewhere = await set({ issuer: "https://idp.invalid", clientSecret: null as never });
	expect([elsewhere.status, elsewhere.body.error.param]).toEqual([400, "clientSecret"]);
	expect((await ada.get(`/api/console/overview?${at}`)).status).toBe(200);
	const sent = await begin(ada);
	await set({ clientId: "another" });
	expect((await meOf(ada)).accounts).toEqual([]);
	expect((await ada.get(`/api/console/overview?${at}`)).status).toBe(404);
	expect(await back(ada, { code: liar.tell({ claims: claimsFor(sent) }), state: sent.get("state") ?? "" })).toBe(
		"/sign-in?company=stale",
	);
	// A domain belongs to one account only, and a changed domain must be proved again.
	const thief = await signedUp(service);
	await thief.send("PUT", PATH, SETTINGS);
	await expect(proved(thief.accountId)).rejects.toMatchObject({ code: "conflict" });
	await expect(
		verifyDomain(statements, thief.accountId, async () => [["tollgate-domain=other"]]),
	).rejects.toMatchObject({ code: "conflict" });
	expect((await set({ domain: "other.example", clientSecret: "x" })).body.verifiedAtMs).toBeNull();
	for (const domain of ["works", "-a.example", "a..example", "A.example", "a.example/x", "1.2.3.4"])
		expect([domain, (await set({ domain })).status]).toEqual([domain, 400]);
	for (const issuer of ["http://idp.example", "https://me:pw@idp.example", "file:///etc/passwd"])
		expect((await set({ issuer })).body.error.param).toBe("issuer");
	expect((await owner.send("DELETE", PATH)).status).toBe(200);
	expect((await owner.get(PATH)).body.settings).toBeNull();
});

test("a domain that lacks its DNS record for two days must be proved again", async () => {
	const { accountId, send } = await signedUp(service);
	await send("PUT", PATH, { ...SETTINGS, domain: "daily.example" });
	const record = [["tollgate-domain=", await tokenOf(accountId)]];
	const failed = (code: string) => Promise.reject(Object.assign(new Error(code), { code }));
	const now = Date.now();
	for (const [days, answer, state] of [
		[0.9, () => failed("ENODATA"), "kept"],
		[1.1, async () => record, "renewed"],
		[1.1, () => failed("ENODATA"), "kept"],
		[2.1, () => failed("ESERVFAIL"), "kept"],
		[2.1, async () => record, "renewed"],
		[2.1, async () => [["v=spf1"]], "unproved"],
		[2.1, () => failed("ENOTFOUND"), "unproved"],
	] as const) {
		await sql`update company_sign_in set domain_verified_at = clock_timestamp() - make_interval(secs => ${days * 86_400})
			where account_id = ${accountId}`;
		await recheckDomains(statements, answer);
		const [row] = await sql`select domain_verified_at as at from company_sign_in where account_id = ${accountId}`;
		expect([days, row?.at === null ? "unproved" : row?.at.getTime() > now - 60_000 ? "renewed" : "kept"]).toEqual([
			days,
			state,
		]);
	}
});

test("company sign-in in production calls no private address, whatever the name", async () => {
	const sealed = createPublicFetch({ production: true }, async () => [{ address: "10.0.0.1", family: 4 }]);
	for (const url of [
		"https://idp.example/x",
		"https://127.0.0.1/",
		"https://[::1]/",
		"https://localhost/",
		"http://idp.example/",
	])
		await expect(sealed(url, {})).rejects.toThrow("the address is not public");
});

test("a company sign-in fails if `sub` has 256 characters or a line break", async () => {
	await set();
	await proved(owner.accountId);
	const longest = Array.from({ length: 255 }, (_, at) => String.fromCharCode(33 + ((at * 7) % 90))).join("");
	const random = Buffer.from(crypto.getRandomValues(new Uint8Array(6_000))).toString("base64");
	for (const [n, sub] of [random, "a\u0000b", "", "a\nb", "\ud800", `${longest}x`].entries()) {
		const email = `other-${n}@${DOMAIN}`;
		const person = newPerson(service);
		const sent = await begin(person, email);
		const code = liar.tell({ claims: claimsFor(sent, { sub, email }) });
		const answer = await person.fetch(
			`/api/auth/company/callback?${new URLSearchParams({ code, state: sent.get("state") ?? "" })}`,
		);
		expect([n, answer.status, (answer.headers.get("location") ?? "").replace(service.url, "")]).toEqual([
			n,
			302,
			"/sign-in?company=failed",
		]);
		expect(await sql`select 1 from console_user where email = ${email}`).toHaveLength(0);
	}
	expect(await signIn(newPerson(service), { sub: longest, email: `longest@${DOMAIN}` })).toBe("/keys");
});
