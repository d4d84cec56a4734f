import { expect, test } from "bun:test";
import { createAccount } from "../../src/keys/account-admin.ts";
import { withChat } from "../support/service.ts";
import { reply } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { operator, PERSON_ENV, signedUp, topUp } from "./person.ts";

const ask = { model: "test-model", messages: [{ role: "user", content: "hello" }], max_tokens: 10 };

const { upstream, service } = await withChat({
	dialect: "vllm",
	env: { ...PERSON_ENV, PRICE_SECOND_LOOK_PERCENT: "50" },
});
const boss = await operator(service);
const customer = await signedUp(service);
await topUp(customer, boss);
const secret = (await customer.send("POST", "/api/console/keys", { name: "k" })).body.secret;

const at = (path: string) => `/api/console/operator/accounts/${customer.accountId}${path}`;

test("an operator's adjustment is booked once, up to the available credit", async () => {
	await service.settled();
	const before = (await customer.get("/api/console/credit")).body.balance.balanceNanoUsd;
	const idempotencyKey = crypto.randomUUID();
	const body = { usd: "12.5", reason: "goodwill for the outage", idempotencyKey };
	const answers = await Promise.all(Array.from({ length: 4 }, () => boss.send("POST", at("/adjust"), body)));
	expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
	expect((await customer.get("/api/console/credit")).body.balance.balanceNanoUsd).toBe(before + 12.5e9);
	const ledger = (await customer.get("/api/console/credit/ledger")).body.items;
	const entry = ledger.find((row: { kind: string }) => row.kind === "adjustment");
	expect(entry).toMatchObject({ amountNanoUsd: 12.5e9, note: "goodwill for the outage" });
	const much = { usd: "-5000", reason: "too much", idempotencyKey: crypto.randomUUID() };
	expect((await boss.send("POST", at("/adjust"), much)).status).toBe(409);
	for (const usd of ["0", "x", "100000.01", "--5"])
		expect((await boss.send("POST", at("/adjust"), { ...much, usd })).status).toBe(400);
	const promotion = { ...body, promotion: { lastDay: "2099-01-31" }, idempotencyKey: crypto.randomUUID() };
	expect((await boss.send("POST", at("/adjust"), promotion)).status).toBe(200);
	expect((await boss.get(at(""))).body.promotions).toEqual([
		{ lastDay: "2099-01-31", leftNanoUsd: Number(body.usd) * 1e9 },
	]);
});

test("credit held for a running request is shown to customer and operators", async () => {
	upstream.next(reply().hang());
	const leave = new AbortController();
	const running = service.post("/v1/chat/completions", secret, ask, { signal: leave.signal }).catch(() => undefined);
	await waitFor(async () => {
		const items = (await customer.get("/api/console/credit/running")).body.items;
		return items.length === 1 && items[0].keyName === "k";
	}, "the request to be held");
	const credit = (await customer.get("/api/console/credit")).body;
	expect(credit.heldByRequestsNanoUsd).toBeGreaterThan(0);
	expect(credit.balance.heldNanoUsd).toBe(credit.heldByRequestsNanoUsd);
	const { items } = (await boss.get("/api/console/operator/instances")).body;
	expect(items[0]).toMatchObject({ state: "live", running: 1, runningNanoUsd: credit.heldByRequestsNanoUsd });
	leave.abort();
	await running;
	await waitFor(
		async () => (await customer.get("/api/console/credit")).body.balance.heldNanoUsd === 0,
		"it to be let go",
	);
});

test("the list of instances has those that may hold credit before ended ones", async () => {
	const { sql } = service.db;
	await sql`
		insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until)
		select 'past', n, 1, 'left', 1000, now() from generate_series(1, 250) n
		union all select s, 1, 1, s, 1000, now() from unnest(array['closing', 'silent', 'dead', 'joining']) s`;
	try {
		const { items } = (await boss.get("/api/console/operator/instances")).body;
		const states = items.map(({ state }: { state: string }) => state).filter((state: string) => state !== "left");
		expect(states).toEqual(["dead", "closing", "silent", "live", "joining"]);
	} finally {
		await sql`delete from instance_beat where id in ('past', 'closing', 'silent', 'dead', 'joining')`;
	}
});

test("the page of reconciliations shows late settlements that charged nothing", async () => {
	const { sql } = service.db;
	await sql`insert into refused_settlement (instance_id, epoch, requests, charged_nano_usd, at) values
		('i', 1, 12, 3000000, '2026-01-01'), ('j', 4, 5, 40, '2026-01-02')`;
	try {
		expect((await boss.get("/api/console/operator/reconciliation")).body.refused).toEqual({
			requests: 17,
			chargedNanoUsd: 3_000_040,
			atMs: Date.parse("2026-01-02"),
			instance: "j",
		});
	} finally {
		await sql`delete from refused_settlement`;
	}
});

test("an operator's check of the books is stored", async () => {
	await service.settled();
	const run = await boss.send("POST", "/api/console/operator/reconciliation");
	expect(run.body).toMatchObject({ ok: true });
	const list = (await boss.get("/api/console/operator/reconciliation")).body;
	expect(list.runs[0]).toMatchObject({ id: run.body.id, by: boss.email });
	expect(list.greenSinceMs).toBe(list.runs.at(-1).atMs);
	expect(list.refused).toBe(null);
	await service.db.sql`update budget set drawn_nano_usd = drawn_nano_usd + 1 where id = ${customer.accountId}`;
	try {
		expect((await boss.send("POST", "/api/console/operator/reconciliation")).body.ok).toBe(false);
		const summary = (await boss.get("/api/console/operator/summary")).body;
		expect(summary.reconciliation).toMatchObject({ ok: false, greenSinceMs: null });
	} finally {
		await service.db.sql`update budget set drawn_nano_usd = drawn_nano_usd - 1 where id = ${customer.accountId}`;
	}
});

test("an operator finds accounts by address, name, key or top-up", async () => {
	const keyId = (await customer.get("/api/console/keys")).body.items[0].id;
	for (const q of [customer.email, customer.email.slice(0, 8), customer.accountId, keyId]) {
		const { items } = (await boss.get(`/api/console/operator/accounts?q=${encodeURIComponent(q)}`)).body;
		expect(items.map((item: { id: string }) => item.id)).toContain(customer.accountId);
	}
	expect((await boss.get("/api/console/operator/accounts?q=%25")).body.items).toEqual([]);
	// An address and a name of the maximum length.
	const long = { email: `${"x".repeat(308)}@example.com`, name: "n".repeat(200) };
	const { id } = await createAccount(service.db.statements, { ...long, vouched: true });
	for (const q of [long.email, long.name]) {
		const { status, body } = await boss.get(`/api/console/operator/accounts?q=${encodeURIComponent(q)}`);
		expect([q, status, body.items?.map((item: { id: string }) => item.id)]).toEqual([q, 200, [id]]);
	}
	expect((await boss.get(`/api/console/operator/audit?actor=${encodeURIComponent(long.email)}`)).status).toBe(200);
	const detail = (await boss.get(at(""))).body;
	expect(detail.keys).toHaveLength(1);
	expect(detail.members.map((one: { email: string }) => one.email)).toEqual([customer.email]);
	const { items } = (await boss.get("/api/console/operator/deployments")).body;
	expect(items[0]).toMatchObject({ modelId: "test-model", status: "connected" });
	expect(items[0].replicas[0].alias).toBe("test-model#0");
});

test("agreed prices are shown to the account's members after a second confirmation", async () => {
	const [second, other] = [await operator(service), await signedUp(service)];
	const price = {
		model: "test-model",
		discount: null,
		from: null,
		rates: { input: "0.9", cached_input: "0.5", output: "1" },
	};
	const asked = () => ({ usd: "0", reason: "contract 7", price, idempotencyKey: crypto.randomUUID() });
	const inputOf = async (person: typeof boss, account = "") => {
		const query = `id=test-model${account && `&account=${account}`}`;
		const { rates, agreed, history } = (await person.get(`/api/console/public/model?${query}`)).body;
		const [listed] = (await person.get(`/api/console/public/models?${query.slice("id=test-model&".length)}`)).body
			.items;
		expect([listed.rates, listed.agreed]).toEqual([rates, agreed]);
		return [rates.input, agreed, history[0].rates.input];
	};
	const adjusted = await boss.send("POST", at("/adjust"), { ...asked(), idempotencyKey: crypto.randomUUID() });
	expect(adjusted.body).toMatchObject({ secondLookNeeded: true, fence: null });
	expect(await inputOf(customer, customer.accountId)).toEqual([1_000_000, false, 1_000_000]);
	const [waiting] = (await boss.get("/api/console/operator/summary")).body.waitingAdjustments;
	expect(waiting).toMatchObject({ kind: "price", amountNanoUsd: 0, terms: { model: "test-model", discount: null } });
	const confirm = `/api/console/operator/adjustments/${waiting.id}/confirm`;
	expect((await boss.send("POST", confirm)).status).toBe(409);
	expect((await second.send("POST", confirm)).body).toMatchObject({ state: "booked", fence: { effective: true } });
	const agreed = [900_000, true, 1_000_000];
	expect([await inputOf(customer), await inputOf(customer, customer.accountId)]).toEqual([agreed, agreed]);
	for (const person of [other, boss]) expect(await inputOf(person)).toEqual([1_000_000, false, 1_000_000]);
	expect((await other.get(`/api/console/public/models?account=${customer.accountId}`)).status).toBe(404);
	await boss.send("POST", at("/view"));
	expect(await inputOf(boss, customer.accountId)).toEqual(agreed);
	expect((await boss.get(at(""))).body.account.agreements).toMatchObject([{ id: waiting.id }]);
});
