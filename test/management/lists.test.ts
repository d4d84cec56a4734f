import { expect, test } from "bun:test";
import { writeUsage } from "../console/usage-rows.ts";
import { chatModel, withChat } from "../support/service.ts";
import { rebuildAllSums } from "../support/sums.ts";
import { waitFor } from "../support/wait.ts";
import { managementClient, memberOf } from "./management-client.ts";

const { upstream, service } = await withChat({ dialect: "vllm" });
const script = await managementClient(service);

// biome-ignore lint/suspicious/noExplicitAny: rows of any list.
async function whole(path: string, between: () => Promise<unknown> = async () => {}): Promise<any[]> {
	// biome-ignore lint/suspicious/noExplicitAny: rows of any list.
	const rows: any[] = [];
	let after = "";
	for (;;) {
		const page = (await script.get(`${path}${path.includes("?") ? "&" : "?"}limit=2${after}`)).body;
		rows.push(...page.data);
		expect(page.has_more).toBe(page.next !== null);
		if (page.next === null) return rows;
		expect(page.data).toHaveLength(2);
		after = `&after=${encodeURIComponent(page.next)}`;
		await between();
	}
}

test("a list has each account and key once although others are created during paging", async () => {
	const accounts: string[] = [];
	for (let n = 0; n < 5; n++) accounts.unshift(await service.account({ credit: null }));
	const [accountId = ""] = accounts;
	const keys: string[] = [];
	for (let n = 0; n < 5; n++) keys.unshift((await service.key(accountId)).id);
	const ids = (rows: { id: string }[]) => rows.map(({ id }) => id);
	expect(ids(await whole("/accounts", () => service.account({ credit: null }))).slice(0, 5)).toEqual(accounts);
	expect(ids(await whole(`/keys?account_id=${accountId}`, () => service.key(accountId)))).toEqual(keys);
	const { email } = (await script.get(`/accounts/${accountId}`)).body;
	expect(ids((await script.get(`/accounts?email=${encodeURIComponent(email.toUpperCase())}`)).body.data)).toEqual([
		accountId,
	]);
	expect((await script.get("/accounts?email=nobody%40example.com")).body.data).toEqual([]);
});

test("projects are each listed once while others are created; the 1,001st is refused", async () => {
	const accountId = await service.account();
	const path = `/accounts/${accountId}/projects`;
	const make = (name: string) => script.send("POST", path, { name });
	const made: string[] = [];
	for (let n = 0; n < 5; n++) made.unshift((await make(`p${n}`)).body.id);
	expect((await whole(path, () => make("late"))).map(({ id }) => id)).toEqual(made);
	expect((await script.get("/accounts/acc_none/projects")).status).toBe(404);
	for (const name of ["", " ", "x".repeat(10_000), "a\u0000b", "a\nb", "\u009b", "\ud800"]) {
		const { status, body } = await make(name);
		expect([name, status, body.error.param]).toEqual([name, 400, "name"]);
	}
	await service.db.sql`insert into project (id, account_id, name)
		select 'proj_' || ${accountId} || n, ${accountId}, 'p' from generate_series(1, 992) n`;
	expect((await script.get(`${path}?limit=200`)).body.data).toHaveLength(200);
	expect([(await make("the last")).status, (await make("one more")).status]).toEqual([200, 409]);
});

test("only members of an account can join its project, and only once", async () => {
	const { accountId } = await service.customer();
	const project = (await script.send("POST", `/accounts/${accountId}/projects`, { name: "p" })).body.id;
	const [userId, stranger] = [await memberOf(service, accountId), await memberOf(service, await service.account())];
	const path = `/projects/${project}/members`;
	const [row] = await service.db.sql`select email from console_user where id = ${userId}`;
	const added = await Promise.all([
		...Array.from({ length: 4 }, () => script.send("POST", path, { user_id: userId })),
		...Array.from({ length: 4 }, () => script.send("POST", path, { email: String(row?.email).toUpperCase() })),
	]);
	expect(added.map(({ status, body }) => [status, body.user_id])).toEqual(Array(8).fill([200, userId]));
	expect((await script.get(path)).body.data).toEqual([added[0]?.body]);
	for (const [who, status] of [
		[{ user_id: stranger }, 404],
		[{ email: `${stranger}@example.com` }, 404],
		[{ user_id: "nobody" }, 404],
		[{}, 400],
		[{ user_id: userId, email: row?.email }, 400],
	] as const) {
		expect([who, (await script.send("POST", path, who)).status]).toEqual([who, status]);
		expect([who, (await script.send("POST", `${path}/remove`, { ...who, keys: "revoke" })).status]).toEqual([
			who,
			status,
		]);
	}
	const settings = { name: "his", madeBy: userId };
	const [inside, outside] = [
		await service.key(accountId, { ...settings, projectId: project }),
		await service.key(accountId, settings),
	];
	const remove = (keys?: string) => script.send("POST", `${path}/remove`, { user_id: userId, keys });
	expect((await remove()).body.error).toMatchObject({ code: "conflict", param: "keys" });
	expect((await script.get(path)).body.data).toHaveLength(1);
	const gone = await remove("revoke");
	expect([gone.status, gone.body.revoked_keys, gone.body.in_force.effective]).toEqual([200, [inside.id], true]);
	expect((await remove("revoke")).body).toMatchObject({ revoked_keys: [], in_force: { effective: true } });
	expect((await remove()).status).toBe(404);
	const states = [inside, outside].map(async ({ id }) => (await script.get(`/keys/${id}`)).body.state);
	expect(await Promise.all(states)).toEqual(["revoked", "active"]);
	expect((await script.get(path)).body.data).toEqual([]);
});

test("an archived project can be read, but not changed, nor seen by another account", async () => {
	const [one, other] = [await service.customer(), await service.customer()];
	const { id } = (await script.send("POST", `/accounts/${one.accountId}/projects`, { name: "p" })).body;
	const moved = await script.send("PATCH", `/keys/${other.keyId}`, { project_id: id });
	expect([moved.status, (await script.get(`/keys/${other.keyId}`)).body.project_id]).toEqual([404, null]);
	const made = await script.send("POST", "/keys", { account_id: other.accountId, name: "k", project_id: id });
	expect(made.status).toBe(404);
	expect((await script.get(`/accounts/${other.accountId}/projects`)).body.data).toEqual([]);
	expect((await script.send("PATCH", `/projects/${id}`, {})).status).toBe(400);
	for (let n = 0; n < 2; n++) {
		const { status, body } = await script.send("POST", `/projects/${id}/archive`);
		expect([status, body.state, body.in_force.effective]).toEqual([200, "archived", true]);
	}
	const read = await script.get(`/projects/${id}`);
	expect(read.body.archived_at).toBeString();
	const changed = await script.send("PATCH", `/projects/${id}`, { name: "q" }, { "if-match": `"${read.body.etag}"` });
	expect([changed.status, (await script.get(`/projects/${id}`)).headers.get("etag")]).toEqual([
		409,
		read.headers.get("etag"),
	]);
	for (const [method, path] of [
		["GET", ""],
		["PATCH", ""],
		["POST", "/archive"],
		["GET", "/members"],
		["POST", "/members"],
		["POST", "/members/remove"],
	] as const) {
		const body = path.startsWith("/members") ? { user_id: "x" } : method === "PATCH" ? { name: "x" } : {};
		const answer =
			method === "GET"
				? await script.get(`/projects/proj_none${path}`)
				: await script.send(method, `/projects/proj_none${path}`, body);
		expect([method, path, answer.status]).toEqual([method, path, 404]);
	}
});

test("the list of adjustments can be filtered by account and state", async () => {
	const accountId = await service.account();
	const made: string[] = [];
	for (const token of ["a", "b", "c"]) {
		const body = { account_id: accountId, amount_usd: "1", reason: "a test", client_token: `list-${token}` };
		made.unshift((await script.send("POST", "/credit-adjustments", body)).body.id);
	}
	expect((await whole(`/credit-adjustments?account_id=${accountId}&state=booked`)).map(({ id }) => id)).toEqual(made);
	expect((await script.get(`/credit-adjustments?account_id=${accountId}&state=pending`)).body.data).toEqual([]);
	expect((await script.get("/credit-adjustments?state=lost")).body.error.param).toBe("state");
});

test("usage by account, day, key and model adds up to the settled sum, in pages", async () => {
	const [one, other] = [await service.customer(), await service.customer()];
	for (const { accountId, keyId } of [one, other])
		await writeUsage(service.db, { accountId, keyIds: [keyId, `${keyId}_b`], rows: 60, days: 3, models: 2 });
	// Waits until the usage of earlier tests has been settled.
	await service.settled();
	await rebuildAllSums(service.db.statements);
	const nowMs = Date.now();
	const day = (ago: number) => new Date(nowMs - ago * 86_400_000).toISOString().slice(0, 10);
	const range = `from=${day(6)}&to=${day(0)}`;
	for (const accountId of [one.accountId, null]) {
		const rows = await whole(`/usage?${range}${accountId === null ? "" : `&account_id=${accountId}`}`);
		const expected = await service.db.sql`
			select account_id, to_char(admitted_at at time zone 'UTC', 'YYYY-MM-DD') as day, key_id, model, count(*) as requests,
				sum(prompt_tokens) as prompt, sum(charged_nano_usd) as charged
			from usage_event where account_id = ${accountId} or ${accountId === null} group by 1, 2, 3, 4`;
		const name = (row: Record<string, unknown>) => `${row.account_id} ${row.day} ${row.key_id} ${row.model}`;
		const places = rows.map(name);
		expect(places).toEqual(places.toSorted());
		expect(places).toEqual(expected.map(name).toSorted());
		for (const row of expected) {
			const found = rows.find((item) => name(item) === name(row));
			expect([found?.requests, found?.prompt_tokens]).toEqual([Number(row.requests), Number(row.prompt)]);
			expect(Math.round(Number(found?.cost_usd) * 1e9)).toBe(Number(row.charged));
		}
	}
	const byKey = await whole(`/usage?${range}&key_id=${one.keyId}&model=model-0`);
	expect(new Set(byKey.map(({ key_id, model }) => `${key_id} ${model}`))).toEqual(new Set([`${one.keyId} model-0`]));
	for (const [query, param] of [
		[`to=${day(0)}`, "from"],
		[`from=${day(0)}&to=${day(1)}`, "to"],
		[`from=${day(40)}&to=${day(0)}`, "from"],
		[`from=${day(500)}&to=${day(0)}&account_id=${one.accountId}`, "from"],
		[`from=2027-13-01&to=${day(0)}`, "from"],
		// 2026-02-30 must be refused: interpreted as 2 March, its usage would count in two ranges.
		["from=2026-02-30&to=2026-03-05", "from"],
		["from=2026-02-28&to=2026-02-29", "to"],
		["from=0000-01-01&to=0000-01-02", "from"],
		[`${range}&after=nonsense`, "after"],
		[`${range}&limit=0`, "limit"],
		[`${range}&limit=201`, "limit"],
		...["5.0", "1e1", "0x5", "%205", ""].map((limit) => [`${range}&limit=${limit}`, "limit"] as const),
		// The first day of Unix time is valid.
		["from=1970-01-01&to=1970-01-02", undefined],
	] as const)
		expect([query, (await script.get(`/usage?${query}`)).body.error?.param]).toEqual([query, param]);
});

test("the management interface's catalogue has a digest that changes with its rates", async () => {
	const digest = async () => (await script.get("/catalog")).body;
	const before = await digest();
	expect(before).toMatchObject({ in_agreement: true, models: 1 });
	expect(before.gateways).toHaveLength(1);
	await service.serve(chatModel({ url: upstream.url, dialect: "vllm" }).replace('output: "2"', 'output: "3"'));
	await waitFor(async () => (await digest()).digest !== before.digest, "the gateway to report its new rates");
	await service.serve(chatModel({ url: upstream.url, dialect: "vllm" }));
});

test("each key setting accepts its bounds, and an error beyond them names the field", async () => {
	const accountId = await service.account();
	const { id } = await service.key(accountId);
	const bounds: Readonly<Record<string, { readonly good: readonly unknown[]; readonly bad: readonly unknown[] }>> = {
		name: { good: ["x", "x".repeat(100)], bad: ["", " ", "x".repeat(101), "a\u0000"] },
		cap_usd: {
			good: ["0", "0.000000001", "9007199.254740991", null],
			bad: ["-0", "-1", "", "0.0000000001", "9007199.254740992", "1e3", "9".repeat(33)],
		},
		models: {
			good: [[], ["x".repeat(200)], Array(200).fill("m"), null],
			bad: [["x".repeat(201)], [""], Array(201).fill("m")],
		},
		requests_per_minute: { good: [1, 10_000_000, null], bad: [0, -1, 1.5, 10_000_001, 2 ** 31, 2 ** 53, 1e300] },
		concurrency: { good: [1, 10_000_000, null], bad: [0, -1, 1.5, 10_000_001, 2 ** 31] },
		tokens_per_minute: { good: [1, 1_000_000_000, null], bad: [0, -1, 1.5, 1_000_000_001, 2 ** 31] },
		expires_at: {
			good: ["2028-02-29", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59+00:01", null],
			bad: ["", "2027-02-29", "1970-01-01T00:00:00Z", "0000-01-01", "9999-12-31T23:59:59.999-00:01", "10000-01-01"],
		},
	};
	const send = (field: string, value: unknown) =>
		Promise.all([
			script.send("POST", "/keys", { account_id: accountId, name: "n", [field]: value }),
			script.send("PATCH", `/keys/${id}`, { [field]: value }),
		]);
	for (const [field, { good, bad }] of Object.entries(bounds)) {
		for (const value of good)
			for (const { status } of await send(field, value)) expect([field, value, status]).toEqual([field, value, 200]);
		for (const value of bad)
			for (const { status, body } of await send(field, value))
				expect([value, status, body.error.param.split(/[.[]/)[0]]).toEqual([value, 400, field]);
	}
});
