import { expect, test } from "bun:test";
import { MANAGEMENT_ROUTES, type ManagementRouteName } from "../../src/management/management-routes.ts";
import { findViolation } from "../support/json-schema.ts";
import { withChat } from "../support/service.ts";
import { FOLD_MS } from "../support/sums.ts";
import { waitFor } from "../support/wait.ts";
import { type ManagementAnswer, managementClient, memberOf } from "./management-client.ts";

const { upstream, service } = await withChat({ dialect: "vllm", jobs: { pace: 10 } });
const script = await managementClient(service);
const { accountId, keyId, secret } = await service.customer();
const document = await (await fetch(`${service.url}/openapi.json`)).json();

function assertDescribed(name: ManagementRouteName, { status, body }: ManagementAnswer): void {
	const { path, method } = MANAGEMENT_ROUTES[name];
	const described = document.paths[path][method.toLowerCase()].responses[String(status)];
	if (described === undefined) throw new Error(`${name}: the status ${status} is not described`);
	const violation = findViolation(document, described.content["application/json"].schema, body);
	if (violation !== undefined) throw new Error(`${name}: ${violation}\nin ${JSON.stringify(body)}`);
}

test("every response matches its schema in the OpenAPI document", async () => {
	// Includes tomorrow: usage around midnight (UTC) may belong to that day.
	const day = (ahead: number) => new Date(Date.now() + ahead * 86_400_000).toISOString().slice(0, 10);
	const usage = `/usage?from=${day(0)}&to=${day(1)}&account_id=${accountId}`;
	await (
		await service.post("/v1/chat/completions", secret, {
			model: "test-model",
			messages: [{ role: "user", content: "hi" }],
		})
	).text();
	await service.settled();
	await waitFor(async () => (await script.get(usage)).body.data.length === 1, "the use to be summed up", FOLD_MS);
	await waitFor(async () => (await script.get("/models")).body.data.length === 1, "the gateway's report");
	const credit = { account_id: accountId, amount_usd: "-1", reason: "a test", client_token: "described" };
	const adjusted = await script.send("POST", "/credit-adjustments", credit);
	const entries = JSON.stringify([
		{ about: "Usage", debit: "2000", credit: "4000", model: "test-model", nanoUsd: "1" },
	]);
	await service.db
		.sql`insert into journal_month (month, deferred_nano_usd, promotional_nano_usd, entries) values ('2026-01-01', 1, 0, ${entries}::text::jsonb)`;
	const email = `${crypto.randomUUID()}@example.com`;
	const project = `/projects/${(await script.send("POST", `/accounts/${accountId}/projects`, { name: "p" })).body.id}`;
	const user_id = await memberOf(service, accountId);
	const answers: { readonly [Name in ManagementRouteName]: () => Promise<ManagementAnswer> } = {
		self: () => script.get("/self"),
		listAccounts: () => script.get("/accounts"),
		createAccount: () => script.send("POST", "/accounts", { email }),
		createPrices: () =>
			script.send("POST", `/accounts/${accountId}/prices`, { discount: "5", reason: "a test", client_token: "prices" }),
		readAccount: () => script.get(`/accounts/${accountId}`),
		updateAccount: () => script.send("PATCH", `/accounts/${accountId}`, { state: "active", reason: "a test" }),
		readCredit: () => script.get(`/accounts/${accountId}/credit`),
		listProjects: () => script.get(`/accounts/${accountId}/projects`),
		createProject: () => script.send("POST", `/accounts/${accountId}/projects`, { name: "new", cap_usd: "3" }),
		readProject: () => script.get(project),
		updateProject: () => script.send("PATCH", project, { cap_period: "week", models: ["test-model"] }),
		addProjectMember: () => script.send("POST", `${project}/members`, { user_id }),
		listProjectMembers: () => script.get(`${project}/members`),
		removeProjectMember: () => script.send("POST", `${project}/members/remove`, { user_id, keys: "revoke" }),
		archiveProject: () => script.send("POST", `${project}/archive`),
		listKeys: () => script.get(`/keys?account_id=${accountId}`),
		createKey: () => script.send("POST", "/keys", { account_id: accountId, name: "new" }),
		readKey: () => script.get(`/keys/${keyId}`),
		updateKey: () => script.send("PATCH", `/keys/${keyId}`, { cap_usd: "5" }),
		rotateKey: () => script.send("POST", `/keys/${keyId}/rotate`, { grace_seconds: 60 }),
		revokeKey: () => script.send("POST", `/keys/${keyId}/revoke`),
		listAdjustments: () => script.get("/credit-adjustments"),
		createAdjustment: () => script.send("POST", "/credit-adjustments", credit),
		readAdjustment: () => script.get(`/credit-adjustments/${adjusted.body.id}`),
		listUsage: () => script.get(usage),
		listJournals: () => script.get("/journals"),
		readJournal: () => script.get("/journals/2026-01"),
		readCatalog: () => script.get("/catalog"),
		listModels: () => script.get("/models"),
		listDeployments: () => script.get("/deployments"),
	};
	for (const [name, call] of Object.entries(answers)) {
		const answer = await call();
		expect([name, answer.status]).toEqual([name, 200]);
		assertDescribed(name as ManagementRouteName, answer);
	}
	assertDescribed("readKey", await script.get("/keys/none"));
	assertDescribed("listKeys", await script.get("/keys"));
	expect(JSON.stringify((await script.get("/deployments")).body.data)).not.toContain(upstream.url);
}, 120_000);

test("each operation names its own security scheme and required scope", () => {
	for (const { path, method, scope } of Object.values(MANAGEMENT_ROUTES)) {
		const operation = document.paths[path][method.toLowerCase()];
		expect([path, operation.security]).toEqual([path, [{ managementKey: [] }]]);
		if (scope !== null) expect(operation.description).toContain(scope);
	}
	expect(document.components.securitySchemes.managementKey.scheme).toBe("bearer");
});
