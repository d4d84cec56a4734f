import { expect, test } from "bun:test";
import { createOperator, revokeOperator } from "../../src/console/operator/operator-admin.ts";
import { createSignInLink } from "../../src/console/sign-in/new-sign-in-link.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { chatModel, startService, withService } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { cpuMs, waitFor } from "../support/wait.ts";
import { confirmAddress, mailedLink, newPerson, operator, PASSWORD, PERSON_ENV, signedUp } from "./person.ts";
import { totpCode } from "./totp.ts";

let models: string;

const upstream = withUpstream("vllm");
models = chatModel({ url: upstream.url, dialect: "vllm" });
const service = await withService({ models, env: PERSON_ENV });

test("an account created by an operator belongs to the first sign-in of its address", async () => {
	const email = `${crypto.randomUUID()}@example.com`;
	const { id } = await createAccount(service.db.statements, { email, vouched: false });
	const person = newPerson(service, email);
	await person.send("POST", "/api/auth/sign-up/email", { name: "Owner", email, password: PASSWORD });
	expect((await confirmAddress(person)).body).toEqual({ status: true, signedIn: true });
	const me = await person.get("/api/console/me");
	expect(me.body.account).toMatchObject({ id, role: "owner" });
	expect(me.body.accounts).toHaveLength(1);
});

test("many concurrent first requests of a person create one account", async () => {
	const person = newPerson(service);
	await person.send("POST", "/api/auth/sign-up/email", { name: "One", email: person.email, password: PASSWORD });
	expect((await confirmAddress(person)).body).toEqual({ status: true, signedIn: true });
	const all = await Promise.all(Array.from({ length: 8 }, () => person.get("/api/console/me")));
	expect(new Set(all.map((me) => me.body.accounts.length))).toEqual(new Set([1]));
	const [row] = await service.db.sql`select count(*)::int as n from account where email = ${person.email}`;
	expect(row?.n).toBe(1);
});

test("sign-up accepts exactly the addresses that sign-in accepts", async () => {
	const random = () => crypto.randomUUID();
	const addresses = [
		`${random()}@example.com`,
		`O'Neil+a_b.${random()}@Sub-Domain.Example.co.uk`,
		`o!x-${random()}@example.com`,
		`a/b=c-${random()}@example.com`,
		`jörg-${random()}@example.com`,
		`${random()}.@example.com`,
		`a..${random()}@example.com`,
		`${random()}'@example.com`,
		`${random()}@localhost`,
		`${random()}@example.com.`,
		`${random()}@bücher.example`,
		`${random()}@xn--bcher-kva.example`,
		`${random()}@example.xn--p1ai`,
		`${random()}@1.2.3.4`,
		`${random()}@-example.com`,
		`${random()}@exa_mple.com`,
	];
	for (const email of addresses) {
		const browser = newPerson(service);
		const up = await browser.send("POST", "/api/auth/sign-up/email", {
			name: "Test Person",
			email,
			password: PASSWORD,
		});
		const sent = { email, password: PASSWORD };
		const known = (await browser.send("POST", "/api/auth/sign-in/email", sent)).body.code !== "INVALID_EMAIL";
		const reset = await browser.send("POST", "/api/auth/request-password-reset", { email });
		expect([email, up.status, up.status === 200]).toEqual([email, known ? 200 : 400, reset.status === 200]);
		await service.db.sql`delete from rate_limit`;
		const made = createOperator(service.db.statements, email);
		if (known) await made;
		else await expect(made).rejects.toThrow(/^(This address cannot be used to sign in|Enter a valid email address)/);
	}
});

test("sign-up does not reveal that an address is known", async () => {
	const known = await signedUp(service);
	const stranger = newPerson(service);
	const body = (email: string) => ({ name: "Eve", email, password: PASSWORD });
	const taken = await stranger.send("POST", "/api/auth/sign-up/email", body(known.email));
	const fresh = await stranger.send("POST", "/api/auth/sign-up/email", body(`${crypto.randomUUID()}@example.com`));
	expect(taken.status).toBe(fresh.status);
	expect(Object.keys(taken.body).sort()).toEqual(Object.keys(fresh.body).sort());
	const reset = (email: string) => stranger.send("POST", "/api/auth/request-password-reset", { email });
	const [a, b] = [await reset(known.email), await reset("nobody@example.com")];
	expect([a.status, a.body]).toEqual([b.status, b.body]);
});

test("a new password ends every session, and its link works once", async () => {
	const person = await signedUp(service);
	const forgetful = newPerson(service, person.email);
	await forgetful.send("POST", "/api/auth/request-password-reset", { email: person.email, redirectTo: "/reset" });
	const link = new URL(await mailedLink(person));
	expect(link.origin + link.pathname).toBe(`${service.url}/reset`);
	const token = link.searchParams.get("token");
	const newPassword = "another long password";
	expect((await forgetful.send("POST", "/api/auth/reset-password", { newPassword: "short", token })).status).toBe(400);
	expect((await forgetful.send("POST", "/api/auth/reset-password", { newPassword, token })).status).toBe(200);
	expect((await forgetful.send("POST", "/api/auth/reset-password", { newPassword, token })).status).toBe(400);
	expect((await person.get("/api/console/me")).status).toBe(401);
	const old = await person.send("POST", "/api/auth/sign-in/email", { email: person.email, password: PASSWORD });
	expect(old.status).toBe(401);
	await person.send("POST", "/api/auth/sign-in/email", { email: person.email, password: newPassword });
	expect((await person.get("/api/console/me")).status).toBe(200);
});

test("a sign-in with a second factor requires a code", async () => {
	const person = await signedUp(service);
	const enabled = await person.send("POST", "/api/auth/two-factor/enable", { password: PASSWORD });
	expect(enabled.status).toBe(200);
	const secret = new URL(enabled.body.totpURI).searchParams.get("secret") ?? "";
	expect((await person.send("POST", "/api/auth/two-factor/verify-totp", { code: totpCode(secret) })).status).toBe(200);
	expect((await person.get("/api/console/me")).body.user.twoFactorEnabled).toBe(true);

	const again = newPerson(service, person.email);
	const first = await again.send("POST", "/api/auth/sign-in/email", { email: person.email, password: PASSWORD });
	expect(first.body.twoFactorRedirect).toBe(true);
	expect((await again.get("/api/console/me")).status).toBe(401);
	expect((await again.send("POST", "/api/auth/two-factor/verify-totp", { code: "000000" })).status).toBe(401);
	const done = await again.send("POST", "/api/auth/two-factor/verify-totp", {
		code: totpCode(secret, Date.now() + 30_000),
	});
	expect(done.status).toBe(200);
	expect((await again.get("/api/console/me")).status).toBe(200);
	const [row] = await service.db
		.sql`select secret from two_factor t join console_user u on u.id = t.user_id where u.email = ${person.email}`;
	expect(row?.secret).not.toContain(secret);
});

test("an operator who is removed loses the role and all sessions", async () => {
	const boss = await operator(service);
	expect((await boss.get("/api/console/operator/summary")).status).toBe(200);
	await revokeOperator(service.db.statements, boss.email);
	expect((await boss.get("/api/console/operator/summary")).status).toBe(401);
	await boss.send("POST", "/api/auth/sign-in/email", { email: boss.email, password: PASSWORD });
	expect((await boss.get("/api/console/operator/summary")).status).toBe(403);

	const squatter = newPerson(service);
	await squatter.send("POST", "/api/auth/sign-up/email", { name: "Sq", email: squatter.email, password: PASSWORD });
	expect((await createOperator(service.db.statements, squatter.email)).token).not.toBeNull();
	const login = await squatter.send("POST", "/api/auth/sign-in/email", { email: squatter.email, password: PASSWORD });
	expect(login.status).toBe(401);
});

test("earlier sessions of a new operator end before the role applies", async () => {
	const { sql, statements } = service.db;
	const person = await signedUp(service);
	const known = async () => {
		const [row] = await sql`
			select operator, (select count(*)::int from session s where s.user_id = u.id) as sessions,
				(select count(*)::int from audit_event a where a.subject = u.id) as lines
			from console_user u where email = ${person.email}`;
		return row;
	};
	const before = await known();
	expect(before).toMatchObject({ operator: false, sessions: 1 });
	const asked = await sql.begin(async (held) => {
		// A lock on the session's row delays the session's deletion.
		await held`select 1 from session s join console_user u on u.id = s.user_id where u.email = ${person.email} for update of s`;
		const asking = createOperator(statements, person.email);
		await waitFor(
			async () =>
				(await sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)
					.length > 0,
			"the session's end to wait for who holds it",
		);
		expect(await known()).toEqual(before as never);
		return [asking];
	});
	expect(await asked[0]).toMatchObject({ token: null });
	expect(await known()).toMatchObject({ operator: true, sessions: 0, lines: (before?.lines ?? 0) + 1 });
});

test("the session cookie under https is bound to the host, HttpOnly and Secure", async () => {
	const secure = await startService({ models, env: { ...PERSON_ENV, PUBLIC_URL: "https://console.example" } });
	try {
		const person = newPerson(secure);
		const origin = { origin: "https://console.example" };
		const { token } = await createOperator(secure.db.statements, person.email);
		await person.send("POST", "/api/auth/reset-password", { newPassword: PASSWORD, token }, origin);
		const body = { email: person.email, password: PASSWORD };
		expect((await person.send("POST", "/api/auth/sign-in/email", body)).status).toBe(403);
		const response = await person.send("POST", "/api/auth/sign-in/email", body, origin);
		expect(response.status).toBe(200);
		const cookie = response.headers.getSetCookie().find((line) => line.includes("session_token")) ?? "";
		expect(cookie).toStartWith("__Host-tollgate.session_token=");
		for (const part of ["Secure", "HttpOnly", "Path=/", "SameSite=Lax"]) expect(cookie).toContain(part);
		expect(cookie).not.toContain("Domain");
		expect((await person.get("/api/console/me")).status).toBe(200);
		expect(response.headers.get("strict-transport-security")).not.toBeNull();
	} finally {
		await secure.stop();
	}
});

test("production without a mail server refuses sign-up and shows no outbox", async () => {
	const env = { NODE_ENV: "production", KEY_PEPPER: "p".repeat(64), CONSOLE_SECRET: "s".repeat(64) };
	const production = await startService({ models, env });
	try {
		const person = newPerson(production);
		const up = await person.send("POST", "/api/auth/sign-up/email", {
			name: "x",
			email: person.email,
			password: PASSWORD,
		});
		expect(up.status).toBe(400);
		expect((await person.get(`/api/console/public/outbox?email=${person.email}`)).status).toBe(404);
		expect((await person.get("/api/console/public/config")).body).toMatchObject({ signUp: false, production: true });
	} finally {
		await production.stop();
	}
});

test("models and prices are public, server addresses are not", async () => {
	const stranger = newPerson(service);
	const models = await stranger.get("/api/console/public/models");
	expect(models.body.items[0]).toMatchObject({
		id: "test-model",
		rates: { input: 1_000_000, cachedInput: 500_000, output: 2_000_000 },
	});
	const model = await stranger.get("/api/console/public/model?id=test-model");
	expect(model.body.history.map((version: { version: number }) => version.version)).toEqual([1]);
	expect(JSON.stringify([models.body, model.body])).not.toContain(String(upstream.port));
	expect((await stranger.get("/api/console/public/model?id=none")).status).toBe(404);
});

test("sign-in links work only in the demo, whatever the database contains", async () => {
	const boss = await operator(service);
	const path = await createSignInLink(service.db.statements, { email: boss.email, page: "operator", hours: 1 });
	const token = path.split("/").at(-1);
	for (const address of [path, `/api/auth/magic-link/verify?token=${token}`]) {
		const response = await fetch(`${service.url}${address}`, { redirect: "manual" });
		expect([response.status, response.headers.getSetCookie()]).toEqual([404, []]);
	}
});

const marks = `a${"\u0315\u0300".repeat(15_000)}`;
const indexes = `{"email":"a@example.com","password":"correct horse","x":[${'{"999":1},'.repeat(6_000)}{}]}`;
const within = (fields: object) => JSON.stringify({ name: "A", email: "a@example.com", password: PASSWORD, ...fields });

test.each([
	["/api/auth/sign-in/email", within({ password: marks }), "password"],
	["/api/auth/sign-up/email", within({ name: marks }), "name"],
	["/api/auth/request-password-reset", within({ email: marks }), "email"],
	["/api/auth/reset-password", within({ newPassword: marks, token: "t" }), "newPassword"],
	["/api/auth/change-password", within({ currentPassword: marks, newPassword: PASSWORD }), "currentPassword"],
	["/api/auth/update-user", within({ name: marks }), "name"],
	["/api/auth/sign-in/email", indexes, "x"],
	["/api/console/public/sign-in-link", indexes, "x"],
])("%s refuses a costly text quickly with 400, which names the field", async (path, body, param) => {
	const person = newPerson(service);
	const headers = { "content-type": "application/json", origin: service.url };
	await person.get("/api/console/public/config");
	const startedMs = cpuMs();
	const response = await person.fetch(path, { method: "POST", headers, body });
	expect([response.status, await response.json()]).toEqual([
		400,
		{ error: expect.objectContaining({ code: "invalid_request", param, request_id: expect.any(String) }) },
	]);
	expect(cpuMs() - startedMs).toBeLessThan(400);
});
