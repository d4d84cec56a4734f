/** Every route requires a key with the right scope that has not ended, from every kind of caller. */
import { expect, test } from "bun:test";
import { newId } from "../../src/base/id.ts";
import { revokeManagementKey } from "../../src/keys/management-key-admin.ts";
import { MANAGEMENT_SCOPES } from "../../src/keys/management-scope.ts";
import { newManagementSecret } from "../../src/keys/management-secret.ts";
import { createProject } from "../../src/keys/project-admin.ts";
import { MANAGEMENT_ROUTES, type ManagementRoute } from "../../src/management/management-routes.ts";
import { operator, PERSON_ENV } from "../console/person.ts";
import { withChat } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";
import { managementCall, managementClient, memberOf } from "./management-client.ts";

const { service } = await withChat({ dialect: "vllm", env: PERSON_ENV });
const { accountId, secret, keyId } = await service.customer();
const routes: readonly ManagementRoute[] = Object.values(MANAGEMENT_ROUTES);

const projectId = newId("proj");
await createProject(service.db.statements, accountId, { name: "hers" }, projectId);
const worker = await memberOf(service, accountId);
let tokens = 0;
/** Valid bodies, so that only the scope decides the answer. */
function bodyFor({ path, method }: ManagementRoute): object {
	tokens += 1;
	const token = { client_token: `isolation-${tokens}` };
	if (path.endsWith("/accounts")) return { email: `${crypto.randomUUID()}@example.com`, ...token };
	if (path.endsWith("/keys")) return { account_id: accountId, name: "made", ...token };
	if (path.endsWith("/projects")) return { name: "made", ...token };
	if (path.includes("/members")) return { user_id: worker };
	if (path.endsWith("/credit-adjustments"))
		return { account_id: accountId, amount_usd: "1", reason: "isolation", ...token };
	if (path.endsWith("/prices")) return { discount: "5", reason: "isolation", ...token };
	if (path.endsWith("/rotate")) return { grace_seconds: 60 };
	return method === "PATCH" ? { name: "renamed" } : {};
}

await service.db
	.sql`insert into journal_month (month, deferred_nano_usd, promotional_nano_usd, entries) values ('2026-01-01', 0, 0, '[]')`;
const adjusted = await (await managementClient(service)).send("POST", "/credit-adjustments", {
	account_id: accountId,
	amount_usd: "1",
	reason: "isolation",
	client_token: "first",
});
const pathOf = ({ path, query }: ManagementRoute) => {
	const ids = {
		accounts: accountId,
		keys: keyId,
		projects: projectId,
		"credit-adjustments": adjusted.body.id,
		journals: "2026-01",
	};
	const id = ids[path.split("/")[3] as keyof typeof ids];
	const account = query?.includes("account_id") ? [`account_id=${accountId}`] : [];
	const range = query?.includes("from") ? ["from=2026-01-01", "to=2026-01-02"] : [];
	return `${path.replace("/v1/management", "").replace("{id}", id)}?${[...account, ...range].join("&")}`;
};

/** Each client gets a different address, so that failed attempts of other tests do not count. */
let lastAddress = 0;
function call(caller: string | undefined, route: ManagementRoute, address?: string) {
	lastAddress += 1;
	const headers = { "x-forwarded-for": address ?? `10.9.${lastAddress >> 8}.${lastAddress & 255}` };
	if (route.method === "GET") return managementCall(service, caller, "GET", pathOf(route), { headers });
	const body = JSON.stringify(bodyFor(route));
	const init = { body, headers: { ...headers, "content-type": "application/json" } };
	return managementCall(service, caller, route.method, pathOf(route), init);
}

async function refused(caller: string | undefined, status: number, code: string): Promise<void> {
	for (const route of routes) {
		const answer = await call(caller, route);
		expect({ route: route.path, status: answer.status, code: answer.body.error.code }).toEqual({
			route: route.path,
			status,
			code,
		});
	}
}

test("a missing key, an unknown key or an API key opens no management route", async () => {
	await refused(undefined, 401, "missing_api_key");
	await refused(secret, 401, "invalid_api_key");
	await refused(newManagementSecret(service.app.config.serviceName), 401, "invalid_api_key");
	await refused("tgm_anything", 401, "invalid_api_key");
});

/** Sends an invented key on a connection of its own, because `fetch` has at most 256. Resolves with the status. */
async function guess(address: string): Promise<string> {
	const { hostname, port } = new URL(service.url);
	const answered = Promise.withResolvers<string>();
	const socket = await Bun.connect({
		...{ hostname, port: Number(port) },
		socket: {
			data: (_, bytes) => answered.resolve(bytes.toString().slice(9, 12)),
			close: () => answered.resolve("closed"),
		},
	});
	const secret = newManagementSecret(service.app.config.serviceName);
	const head = ["GET /v1/management/self HTTP/1.1", "host: service", `authorization: Bearer ${secret}`];
	socket.write(`${[...head, `x-forwarded-for: ${address}`].join("\r\n")}\r\n\r\n`);
	return answered.promise.finally(() => socket.end());
}

test.each([
	{ guesses: 150, from: "25 networks", address: (at: number) => `10.${100 + (at % 25)}.0.1`, isRefused: false },
	{ guesses: 400, from: "one /24", address: (at: number) => `10.99.0.${at % 250}`, isRefused: true },
	{ guesses: 400, from: "40 networks", address: (at: number) => `10.98.${at % 40}.${at % 250}`, isRefused: true },
])(
	"$guesses invented keys at once from $from lock out no valid management key",
	async ({ guesses, address, isRefused }) => {
		const self = routes.find(({ path }) => path.endsWith("/self")) as ManagementRoute;
		const { secret: used } = await managementClient(service);
		expect((await call(used, self)).status).toBe(200);
		const { secret: fresh } = await managementClient(service);
		const answers: string[] = [];
		const all = Array.from({ length: guesses }, async (_, at) => answers.push(await guess(address(at))));
		if (isRefused) await waitFor(() => answers.includes("503"), "the first guess to be refused");
		const [known, unknown] = [call(used, self, address(1)), call(fresh, self, "192.0.2.1")];
		const statuses = [(await known).status, (await unknown).status];
		expect({ statuses, isContended: guesses - answers.length > 50 }).toEqual({
			statuses: [200, 200],
			isContended: true,
		});
		await Promise.all(all);
	},
	30_000,
);

test("a management key is refused for inference", async () => {
	const { secret: management } = await managementClient(service);
	for (const path of ["/v1/models", "/v1/key", "/v1/credits", "/v1/files"]) {
		const response = await service.get(path, management);
		expect([path, response.status, (await response.json()).error.code]).toEqual([path, 401, "invalid_api_key"]);
	}
	const asked = await service.post("/v1/chat/completions", management, { model: "test-model", messages: [] });
	expect(asked.status).toBe(401);
});

test("each scope opens only its own routes", async () => {
	for (const scope of MANAGEMENT_SCOPES) {
		const client = await managementClient(service, { scopes: [scope] });
		for (const route of routes) {
			// A 409 shows that the scope sufficed: an earlier call has already revoked the key or archived the project.
			const { status, body } = await call(client.secret, route);
			const isForbidden = status === 403 && body.error.code === "forbidden";
			expect([scope, route.path, route.method, isForbidden]).toEqual([
				scope,
				route.path,
				route.method,
				route.scope !== null && route.scope !== scope,
			]);
			if (!isForbidden) expect([200, 409]).toContain(status);
		}
	}
});

test("a management key that is revoked, expired or of a former operator opens no route", async () => {
	const [revoked, expired] = [
		await managementClient(service),
		await managementClient(service, { expiresAtMs: Date.now() - 60_000 }),
	];
	expect((await revoked.get("/self")).status).toBe(200);
	await revokeManagementKey(service.db.statements, revoked.id, { id: "cli", ip: null });
	await refused(revoked.secret, 401, "api_key_revoked");
	await refused(expired.secret, 401, "api_key_expired");
	const [user] = await service.db.sql`select id from console_user where email = ${(await operator(service)).email}`;
	const orphan = await managementClient(service, { madeBy: user?.id });
	expect((await orphan.get("/self")).status).toBe(200);
	await service.db.sql`update console_user set operator = false where id = ${user?.id}`;
	await refused(orphan.secret, 401, "api_key_revoked");
});

test("guesses of a management key by an address are limited; a valid key still works", async () => {
	const { secret: good } = await managementClient(service);
	const self = routes.find(({ path }) => path.endsWith("/self")) as ManagementRoute;
	const statuses: number[] = [];
	for (let guess = 0; guess < 40; guess++) statuses.push((await call("tgm_guess", self, "10.8.0.1")).status);
	expect([statuses.slice(0, 30).every((status) => status === 401), statuses.at(-1)]).toEqual([true, 429]);
	expect((await call(good, self, "10.8.0.1")).status).toBe(200);
});

test("a management key whose right ends while a body is read changes nothing", async () => {
	const client = await managementClient(service);
	const email = `${crypto.randomUUID()}@example.com`;
	const text = JSON.stringify({ email });
	const socket = await Bun.connect({
		hostname: new URL(service.url).hostname,
		port: Number(new URL(service.url).port),
		socket: {
			data(_, bytes) {
				answered.resolve(bytes.toString());
			},
		},
	});
	const answered = Promise.withResolvers<string>();
	const head = [
		"POST /v1/management/accounts HTTP/1.1",
		"host: service",
		`authorization: Bearer ${client.secret}`,
		"content-type: application/json",
		`content-length: ${text.length}`,
	];
	socket.write(`${head.join("\r\n")}\r\n\r\n${text.slice(0, 5)}`);
	// The time of the last use is stored when the key is accepted, before the body is complete.
	await waitFor(async () => {
		const [row] = await service.db.sql`select last_used_at from management_key where id = ${client.id}`;
		return row?.last_used_at !== null;
	}, "the key to be let in");
	await revokeManagementKey(service.db.statements, client.id, { id: "cli", ip: null });
	socket.write(text.slice(5));
	expect(await answered.promise).toContain("api_key_revoked");
	socket.end();
	expect(await service.db.sql`select 1 from account where email = ${email}`).toHaveLength(0);
});

test("an unknown management path gets 404, a wrong method 405 with the allowed methods", async () => {
	const client = await managementClient(service);
	for (const path of [
		"",
		"/",
		"/nothing",
		"/accounts/",
		"/keys/x/y/z",
		`/projects/${projectId}/members/${worker}`,
		"/projects",
		"/accounts/acc_1/keys",
		`/keys/${"x".repeat(65)}`,
	])
		expect([path, (await client.get(path)).status]).toEqual([path, 404]);
	const wrong = await client.send("DELETE", `/keys/${keyId}`);
	expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "GET, PATCH"]);
	const unknown = await client.get("/accounts?q=x");
	expect([unknown.status, unknown.body.error.param]).toEqual([400, "q"]);
	const field = await client.send("PATCH", `/keys/${keyId}`, { cap: "1" });
	expect([field.status, field.body.error.param]).toEqual([400, "cap"]);
});
