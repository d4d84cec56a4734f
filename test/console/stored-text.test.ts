import { expect, test } from "bun:test";
import { createConsoleApi } from "../../src/console/console-api.ts";
import type { ConsoleParts } from "../../src/console/console-deps.ts";
import { MANAGEMENT_ROUTES } from "../../src/management/management-routes.ts";
import { managementClient } from "../management/management-client.ts";
import { LONG } from "../support/long-form.ts";
import { withService } from "../support/service.ts";
import { newPerson, operator, PASSWORD, PERSON_ENV, signedUp } from "./person.ts";

/** Texts that Postgres refuses or changes in JSON (lone surrogates), or refuses everywhere (NUL). */
const BAD: readonly unknown[] = [
	{ text: "half \ud800" },
	{ text: "half \udc00 of a character" },
	{ text: "zero \0" },
	{ "name \ud800": 1 },
	{ deep: { "name \ud800": 1 } },
	{ list: [{ deep: ["fine", "half \ud83d"] }] },
];
const NO_TEXTS = ["%", "%ff", "%ed%a0%80"];
const SAID = "The request contains a character that cannot be stored, such as U+0000. Remove it.";
const service = await withService({ env: PERSON_ENV });
const { sql } = service.db;
const ann = await signedUp(service);
const boss = await operator(service);
const acts = async () => (await sql`select action from audit_event where account_id = ${ann.accountId}`).length;

test("a change with text that the audit log cannot store is refused", async () => {
	const before = await acts();
	const company = { issuer: "https://idp.works.example", clientId: "x", clientSecret: "x", domain: "works.example" };
	const claims = {
		emailTrusted: true,
		roleClaim: "half \ud800",
		roleValues: {},
		defaultRole: "admin",
		required: false,
	};
	const changes: [string, string, object][] = [
		["PUT", "company-sign-in", { ...company, ...claims }],
		["PUT", "credit/billing-details", { company: "half \ud800", address: "", vatId: "" }],
		["PUT", "credit/billing-details", { company: "", address: "half \ud800", vatId: "" }],
	];
	for (const [method, path, body] of changes) {
		const { status, body: answer } = await ann.send(method, `/api/console/${path}`, body);
		expect([path, status, answer.error?.message]).toEqual([path, 400, SAID]);
	}
	for (const act of ["suspend", "unsuspend"]) {
		const path = `/api/console/operator/accounts/${ann.accountId}/${act}`;
		const { status, body } = await boss.send("POST", path, { reason: "half \ud800" });
		expect([act, status, body.error?.message]).toEqual([act, 400, SAID]);
		const [account] = await sql`select state from account where id = ${ann.accountId}`;
		expect([act, account?.state]).toEqual([act, "active"]);
	}
	expect((await ann.get("/api/console/company-sign-in")).body.settings).toBeNull();
	expect((await ann.get("/api/console/credit/billing-details")).body).toMatchObject({ company: "", address: "" });
	expect(await acts()).toBe(before);
});

test("a console address with invalid text gets a 404", async () => {
	const { routes } = createConsoleApi({ sessions: {}, config: {}, live: {} } as unknown as ConsoleParts);
	const named = routes.filter(({ path }) => path.includes("/:"));
	expect(named.length).toBeGreaterThan(10);
	for (const [nth, { method, path }] of named.entries()) {
		const asked = path.startsWith("/api/console/operator/") ? boss : ann;
		for (const bad of LONG ? NO_TEXTS : [NO_TEXTS[nth % NO_TEXTS.length] as string]) {
			const at = path.replace(/:\w+/, bad);
			const { status } = await (method === "GET" ? asked.get(at) : asked.send(method, at));
			expect([method, at, status]).toEqual([method, at, 404]);
		}
	}
});

test("every route with a body refuses text in any field that Postgres cannot store", async () => {
	const { routes } = createConsoleApi({ sessions: {}, config: {}, live: {} } as unknown as ConsoleParts);
	const changes = routes.filter(({ method }) => method === "POST" || method === "PUT" || method === "PATCH");
	expect(changes.length).toBeGreaterThan(20);
	for (const [at, { method, path }] of changes.entries()) {
		const asked = path.startsWith("/api/console/operator/") ? boss : ann;
		// The short form sends one of the texts to each route.
		for (const body of LONG ? BAD : [BAD[at % BAD.length]]) {
			const { status, body: answer } = await asked.send(method, path.replace(/:\w+/, "none"), body);
			expect([method, path, status, answer.error?.message]).toEqual([method, path, 400, SAID]);
		}
	}
});

test("the management interface refuses text that Postgres cannot store", async () => {
	const client = await managementClient(service);
	const texts: [keyof typeof MANAGEMENT_ROUTES, string, Record<string, unknown>][] = [
		["createAccount", "name", { email: "m@example.com" }],
		["updateAccount", "reason", { state: "suspended" }],
		["createKey", "name", { account_id: ann.accountId }],
		["createProject", "name", {}],
		["createAdjustment", "reason", { account_id: ann.accountId, amount_usd: "5", client_token: "once" }],
	];
	const before = await acts();
	for (const [name, field, body] of texts)
		for (const text of ["half \ud800", "zero \0"]) {
			const { method, path } = MANAGEMENT_ROUTES[name];
			const at = path.replace("/v1/management", "").replace("{id}", ann.accountId);
			const { status, body: answer } = await client.send(method, at, { ...body, [field]: text });
			expect([name, status, answer.error?.message, answer.error?.param]).toEqual([name, 400, SAID, field]);
		}
	expect(await acts()).toBe(before);
});

test("sign-in refuses text that Postgres cannot store, without an internal error", async () => {
	const sent: [string, string, Record<string, unknown>][] = [
		["update-user", "name", {}],
		["reset-password", "token", { newPassword: PASSWORD }],
		["verify-email", "token", {}],
		["request-password-reset", "email", {}],
		["sign-in/email", "email", { password: PASSWORD }],
		["sign-up/email", "name", { email: "somebody@example.com", password: PASSWORD }],
		["company/begin", "email", { next: "/keys" }],
	];
	const values = ["half \ud800", "zero \0", "zero\0@example.com", { a: 1 }, ["x"], 5, null];
	for (const [at, [path, field, body]] of sent.entries())
		for (const value of LONG ? values : [values[at], values[(at + 3) % values.length]]) {
			// Each attempt uses a different IP address, because failed attempts are limited by address.
			const person = path === "update-user" ? ann : newPerson(service);
			const { status } = await person.send("POST", `/api/auth/${path}`, { ...body, [field]: value });
			expect([path, value, status >= 400 && status < 500]).toEqual([path, value, true]);
		}
});
