/** Tests which actions an unattended page or a stolen cookie allows some time after the sign-in. */
import { expect, test } from "bun:test";
import { createConsoleApi } from "../../src/console/console-api.ts";
import type { ConsoleParts } from "../../src/console/console-deps.ts";
import { ROUTE_RULES } from "../../src/console/members/route-rules.ts";
import { mailedLink, newPerson, operator, PASSWORD, PERSON_ENV, type Person, signedUp } from "../console/person.ts";
import { withChat } from "../support/service.ts";

const { service } = await withChat({ env: PERSON_ENV });
const { sql } = service.db;

const again = (person: Person, password: unknown) => person.send("POST", "/api/console/reauthenticate", { password });
const minutesPass = (minutes: number) => sql`
	update session set created_at = created_at - ${minutes}::float8 * interval '1 minute',
		authenticated_at = authenticated_at - ${minutes}::float8 * interval '1 minute'`;

async function household() {
	const [owner, other] = [await signedUp(service), await signedUp(service)];
	const make = async (body: object) => (await owner.send("POST", "/api/console/keys", body)).body.key.id as string;
	const capped = await make({ name: "capped", capUsd: "200" });
	const open = await make({ name: "open" });
	const project = await owner.send("POST", "/api/console/projects", { name: "p", capUsd: "5", capPeriod: "month" });
	const { id: projectId } = project.body;
	const inside = await make({ name: "inside", projectId });
	await owner.send("POST", "/api/console/invitations", { email: other.email, role: "developer" });
	const token = new URL(await mailedLink(other)).searchParams.get("token");
	expect((await other.send("POST", "/api/console/invitations/accept", { token })).status).toBe(200);
	const [row] = await sql`select id from console_user where email = ${other.email}`;
	const acts: [string, string, object][] = [
		["POST", "/keys", { name: "x" }],
		["POST", "/keys", { name: "x", capUsd: null }],
		["POST", "/keys", { name: "x", capUsd: "100.01" }],
		["POST", "/keys", { name: "x", capUsd: "9000000" }],
		["POST", "/keys", { name: "x", capUsd: "1", capPeriod: "day" }],
		["PATCH", `/keys/${capped}`, { capUsd: null }],
		["PATCH", `/keys/${capped}`, { capUsd: "200.01" }],
		["PATCH", `/keys/${capped}`, { capPeriod: "month" }],
		["PATCH", `/keys/${inside}`, { projectId: null }],
		["PATCH", `/projects/${projectId}`, { capUsd: null }],
		["PATCH", `/projects/${projectId}`, { capUsd: "500" }],
		["PUT", `/projects/${projectId}/members/${row?.id}`, {}],
		["POST", `/keys/${capped}/rotate`, { graceMs: 0 }],
		["POST", "/invitations", { email: `${crypto.randomUUID()}@example.com`, role: "owner" }],
		["DELETE", `/members/${row?.id}`, {}],
	];
	const spared: [string, string, object][] = [
		["POST", "/keys", { name: "small", capUsd: "100" }],
		["PATCH", `/keys/${capped}`, { capUsd: "150" }],
		["PATCH", `/keys/${open}`, { capUsd: "5000" }],
		["PATCH", `/keys/${open}`, { projectId }],
		["PATCH", `/projects/${projectId}`, { capUsd: "4", models: ["test-model"] }],
		["PATCH", `/keys/${capped}`, { name: "renamed" }],
		["POST", `/keys/${open}/revoke`, {}],
	];
	return { owner, acts, spared };
}
const act = (person: Person, [method, path, body]: [string, string, object]) =>
	person.send(method, `/api/console${path}`, body);
const state = async () =>
	JSON.stringify(
		await sql`
			select (select count(*)::int from api_key) as keys, (select count(*)::int from member) as members,
				(select count(*)::int from invitation) as invitations, (select sum(cap_nano_usd)::text from api_key) as caps`,
	);

test("a sensitive act needs the password again 15 minutes after the sign-in", async () => {
	const { owner, acts, spared } = await household();
	await minutesPass(16);
	const before = await state();
	for (const one of acts) {
		const { status, body } = await act(owner, one);
		expect([one, status, body.error?.code]).toEqual([one, 403, "reauthentication_required"]);
	}
	expect(await state()).toBe(before);
	for (const one of spared) expect([one, (await act(owner, one)).status]).toEqual([one, 200]);
	expect((await again(owner, PASSWORD)).body).toEqual({ authenticated: true });
	await minutesPass(14);
	for (const one of acts) expect([one, (await act(owner, one)).status]).toEqual([one, 200]);
	await minutesPass(2);
	expect((await act(owner, acts[0] as [string, string, object])).status).toBe(403);
}, 60_000);

test("entering the password confirms one session only, and wrong guesses are limited", async () => {
	const owner = await signedUp(service);
	const phone = newPerson(service, owner.email);
	await phone.send("POST", "/api/auth/sign-in/email", { email: owner.email, password: PASSWORD });
	await minutesPass(60);
	const rotate = (person: Person) => act(person, ["POST", "/keys", { name: "x" }]);
	// A client tries to set these fields of its session itself.
	const claim = { authenticatedAt: new Date().toISOString(), authenticated_at: Date.now(), createdAt: new Date() };
	for (const path of ["update-session", "update-user", "get-session"])
		await owner.send("POST", `/api/auth/${path}`, { ...claim, session: claim });
	expect((await rotate(owner)).status).toBe(403);
	for (const odd of [undefined, null, 7, {}, [PASSWORD], "", "\0", "x".repeat(200)])
		expect([400, 422]).toContain((await again(owner, odd)).status);
	const guesses = await Promise.all(Array.from({ length: 24 }, (_, nth) => again(owner, `wrong password ${nth}`)));
	const statuses = guesses.map(({ status }) => status);
	expect(statuses.filter((status) => status === 400).length).toBeLessThanOrEqual(10);
	expect((await again(owner, PASSWORD)).status).toBe(429);
	// Guesses block no other session of the person. Another person's password confirms nothing.
	const other = await signedUp(service);
	expect((await again(other, PASSWORD)).status).toBe(200);
	expect((await rotate(phone)).status).toBe(403);
	expect((await again(phone, PASSWORD)).status).toBe(200);
	expect([(await rotate(phone)).status, (await rotate(owner)).status]).toEqual([200, 403]);
	expect((await again(newPerson(service), PASSWORD)).status).toBe(401);
});

/** Routes that require the password again after 15 minutes: all changing routes except those in `ROUTE_RULES`. */
const ASKING = [
	"POST /invitations",
	"PATCH /members/:userId",
	"DELETE /members/:userId",
	"DELETE /passkeys/:id",
	"PUT /projects/:id/members/:userId",
	"POST /credit/card",
	"PUT /credit/auto-top-up",
	"PUT /company-sign-in/",
	"POST /company-sign-in/verify",
	"DELETE /company-sign-in/",
	"POST /keys/:id/rotate",
	"POST /batch-notices/secret",
	"PUT /operator/accounts/:id/terms",
	"POST /operator/accounts/:id/suspend",
	"POST /operator/accounts/:id/view",
	"POST /operator/accounts/:id/unsuspend",
	"POST /operator/accounts/:id/adjust",
	"POST /operator/adjustments/:id/confirm",
	"POST /operator/adjustments/:id/reject",
	"POST /operator/top-ups/:id/confirm",
	"POST /operator/top-ups/:id/reject",
	"POST /operator/payment-findings/close",
	"POST /operator/management-keys",
];

test("every route that changes data requires the password unless listed as exempt", async () => {
	const nothing = new Proxy({}, { get: () => () => {} }) as ConsoleParts;
	const routes = createConsoleApi(nothing)
		.routes.filter(({ method }) => method !== "GET")
		.map(({ method, path }) => `${method} ${path.slice("/api/console".length)}`);
	const spared = Object.keys(ROUTE_RULES).filter((route) => typeof ROUTE_RULES[route] === "object");
	expect(routes.filter((route) => !spared.includes(route)).toSorted()).toEqual(ASKING.toSorted());
	expect(spared.filter((route) => !routes.includes(route))).toEqual([]);

	const [worker, visitor] = [await operator(service), newPerson(service)];
	const codeOf = async (person: Person, route: string) => {
		const [method, path] = route.split(" ") as [string, string];
		return (await person.send(method, `/api/console${path.replace(/:\w+/, "x")}`, {})).body.error?.code;
	};
	await minutesPass(16);
	for (const route of ASKING) {
		expect([route, await codeOf(worker, route)]).toEqual([route, "reauthentication_required"]);
		expect([route, await codeOf(visitor, route)]).toEqual([route, "session_required"]);
	}
	for (const route of spared.filter((one) => !one.startsWith("POST /sessions")))
		expect([route, await codeOf(worker, route)]).not.toEqual([route, "reauthentication_required"]);
	expect((await again(worker, PASSWORD)).status).toBe(200);
	for (const route of ASKING)
		expect([route, await codeOf(worker, route)]).not.toEqual([route, "reauthentication_required"]);
}, 60_000);

test("the caps of all keys that a session creates without the password have one limit", async () => {
	const owner = await signedUp(service);
	const make = (capUsd: string) => act(owner, ["POST", "/keys", { name: "x", capUsd }]);
	const small = (await make("1")).body.key.id as string;
	expect((await make("100")).status).toBe(200);
	const spendable = async () => {
		const [row] =
			await sql`select sum(cap_nano_usd)::float8 / 1e9 as usd from api_key where account_id = ${owner.accountId}`;
		return row?.usd as number;
	};
	const before = await spendable();
	await minutesPass(16);
	const made = await Promise.all(Array.from({ length: 24 }, (_, nth) => make(nth % 2 === 0 ? "30" : "40.000001")));
	const statuses = new Set(made.map(({ status }) => status));
	expect([...statuses].toSorted()).toEqual([200, 403]);
	expect((await spendable()) - before).toBeLessThanOrEqual(100);
	// Lowering a key's cap and raising it again does not evade the limit of USD 100 a day without the password.
	for (let times = 0; times < 3; times += 1)
		for (const capUsd of ["100", "1"]) await act(owner, ["PATCH", `/keys/${small}`, { capUsd }]);
	expect((await act(owner, ["PATCH", `/keys/${small}`, { capUsd: "100" }])).status).toBe(403);
	expect((await spendable()) - before).toBeLessThanOrEqual(100);
	await sql`update rate_count set started_at = started_at - interval '25 hours'`;
	expect((await make("100")).status).toBe(200);
	expect((await make("0.01")).status).toBe(403);
	await again(owner, PASSWORD);
	expect((await make("5000")).status).toBe(200);
}, 60_000);
