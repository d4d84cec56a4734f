import { afterEach, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createFixedCatalog, type FixedCatalog } from "../../src/catalog/catalog.ts";
import type { Statements } from "../../src/db/statements.ts";
import { ensureDemoAccount } from "../../src/demo/demo.ts";
import { DEMO_DATA_SUFFIX, ensureDemoHistory } from "../../src/demo/demo-history.ts";
import { demoModelSpec } from "../../src/demo/found-model.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { accountBalance } from "../../src/ledger/balance.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";

const CREDIT = 100_000_000_000;
let db: TestDatabase;
let catalog: FixedCatalog;
let accountId: string;

const maker = (statements: Statements) => ({ statements, digest: createDigest("a pepper"), serviceName: "service" });
const ensure = (statements: Statements = db.statements) =>
	ensureDemoHistory(
		{ ...maker(statements), clock: systemClock },
		{ accountId, models: [...catalog.current().models.values()] },
	);

beforeEach(async () => {
	db = await createTestDatabase();
	catalog = createFixedCatalog({ statements: db.statements, clock: systemClock, log: silentLog });
	const upstream = { url: "http://127.0.0.1:1/v1", model: "m", dialect: "openai" } as const;
	const sizes = { contextLength: 8192, maxOutputTokens: 1024 };
	await catalog.setModels([
		demoModelSpec({ id: "m", name: "M", kind: "chat", modes: ["chat"], parameters: [], upstream, ...sizes }),
	]);
	accountId = (await ensureDemoAccount(maker(db.statements), { nowMs: Date.now(), newPepper: false })).id;
});
afterEach(() => db.drop());

async function books() {
	const [usage] = await db.sql<{ rows: number; charged: string; last: Date }[]>`
		select count(*)::int as rows, sum(charged_nano_usd)::text as charged, max(admitted_at) as last from usage_event`;
	const { balance, spent, available, held } = await accountBalance(db.statements, accountId);
	const broken = (await reconcile(db.statements)).checks.filter(({ ok }) => !ok);
	const live = await db.sql`select 1 from instance_now where state <> 'left'`;
	const [own] = await db.sql<{ charged: string }[]>`
		select coalesce(sum(charged_nano_usd), 0)::text as charged from usage_event where account_id = ${accountId}`;
	// The balance and the spent amount, which the pages show together, must add up.
	expect([Number(balance), Number(spent)]).toEqual([CREDIT - Number(own?.charged), Number(own?.charged)]);
	return { usage, free: Number(available) === Number(balance), held: Number(held), broken, live: live.length };
}

test("the demo's sample usage is booked like real usage and reduces the balance", async () => {
	await ensure();
	const { usage, ...rest } = await books();
	expect(rest).toEqual({ free: true, held: 0, broken: [], live: 0 });
	expect(usage?.rows).toBeGreaterThan(4_500);
	expect(Number(usage?.charged)).toBeGreaterThan(0);
	const names = await db.sql<{ name: string }[]>`
		select distinct k.name from usage_event e join api_key k on k.id = e.key_id order by 1`;
	expect(names).toHaveLength(3);
	for (const { name } of names) expect(name).toEndWith(DEMO_DATA_SUFFIX);
});

test("no account of the demo is overdrawn at any time of its history", async () => {
	await ensure();
	const [lowest] = await db.sql<{ nano: string }[]>`
		select min(sum)::text as nano from (
			select sum(nano) over (partition by account_id order by at, nano desc) from (
				select account_id, created_at as at, amount_nano_usd as nano from ledger_entry
				union all select account_id, admitted_at, -charged_nano_usd from usage_event) moves) sums`;
	expect(Number(lowest?.nano)).toBeGreaterThan(0);
});

test("a later start of the demo adds no usage and returns the existing key", async () => {
	await ensure();
	const before = await books();
	await ensure();
	expect(await books()).toEqual(before);
	const again = await ensureDemoAccount(maker(db.statements), { nowMs: Date.now(), newPepper: false });
	expect(again.secret).toBeUndefined();
	const [shown] = await db.sql`select name from api_key where last_four = ${again.key.lastFour}`;
	expect(shown?.name).toBe("demo");
});

test("a start of the demo creates a key if no usable key exists", async () => {
	const start = (serviceName = "service", newPepper = false) =>
		ensureDemoAccount({ ...maker(db.statements), serviceName }, { nowMs: Date.now(), newPepper });
	expect((await start()).secret).toBeUndefined();
	await db.sql`update api_key set state = 'revoked'`;
	expect((await start()).secret).toStartWith("sk_service_");
	// A key of another service name or pepper cannot be read.
	expect((await start("acme")).secret).toStartWith("sk_acme_");
	expect((await start("service", true)).secret).toStartWith("sk_service_");
});

test("the next start of the demo completes a start that was cut off at any statement", async () => {
	for (let allowed = 0, done = false; !done; allowed += LONG ? 1 : 12) {
		if (allowed > 150) throw new Error("it never came to its end");
		let left = allowed;
		const cut = new Proxy(db.statements, {
			apply(target, _, args) {
				if (left === 0) throw new Error("cut off");
				left -= 1;
				return Reflect.apply(target, undefined, args);
			},
		});
		done = await ensure(cut).then(
			() => true,
			() => false,
		);
		await ensure();
		const { usage, ...rest } = await books();
		expect({ allowed, ...rest }).toEqual({ allowed, free: true, held: 0, broken: [], live: 0 });
		expect(usage?.rows).toBeGreaterThan(4_500);
		await forget();
	}
}, 240_000);

async function forget(): Promise<void> {
	for (const table of ["usage_event", "lease_op", "lease"]) await db.sql.unsafe(`delete from ${table}`);
	await db.sql`delete from budget b using api_key k where k.id = b.id and k.name like ${`%${DEMO_DATA_SUFFIX}`}`;
	await db.sql`delete from api_key where name like ${`%${DEMO_DATA_SUFFIX}`}`;
	await db.sql`
		update budget b set drawn_nano_usd = 0, limit_nano_usd = case when kind = 'account' then
			(select sum(amount_nano_usd) from ledger_entry e where e.account_id = b.id) end`;
}
