import { expect, test } from "bun:test";
import type { SettledEvent } from "../../src/ledger/event.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { reconcile } from "../../src/ledger/reconcile.ts";
import { withDatabase } from "../support/database.ts";
import { createRandom } from "../support/random.ts";
import { goLive, makeAccount, settledEvent, wish } from "./fixture.ts";

const db = await withDatabase();

const ROUNDS = 40;
const GRANTED = 1_000_000;
const DAY_MS = 86_400_000;

test("of a batch in which some are known, some stand twice, some are held and some too old, just the others are recorded, once each", async () => {
	const { int, pick, chance, shuffled } = createRandom(11);
	const accounts = ["mix-a", "mix-b"];
	for (const account of accounts)
		await makeAccount(db, account, 9_000_000, { [`${account}-key`]: null, [`${account}-more`]: null });
	await goLive(db, "mix");
	const store = createPgLedgerStore({ statements: db.ledger }, "mix", 1);
	await store.grant(accounts.flatMap((name) => ["", "-key", "-more"].map((end) => wish(`${name}${end}`, GRANTED))));
	await db.sql`update removal set usage_before = ${new Date(Date.now() - DAY_MS)}`;
	const charged = new Map<string, number>();
	const recorded = new Set<string>();
	const record = (events: readonly SettledEvent[]) => {
		for (const { id, account, key, charged: amount, budgets = [] } of events) {
			recorded.add(id);
			for (const budget of [account, key, ...budgets]) charged.set(budget, (charged.get(budget) ?? 0) + amount);
		}
	};
	for (let round = 0; round < ROUNDS; round++) {
		const fresh = Array.from({ length: int(1, 12) }, () => {
			const account = pick(accounts);
			const at = chance(0.2) ? Date.now() - 2 * DAY_MS : Date.now();
			return settledEvent(account, `${account}-key`, int(0, 99), {
				at,
				...(chance(0.3) && { budgets: [`${account}-more`] }),
			});
		});
		const young = fresh.filter(({ at }) => at > Date.now() - DAY_MS);
		const known = young.filter(() => chance(0.2));
		expect((await store.flush(known, "[]")).fresh).toBe(known.length);
		record(known);
		const held = fresh.filter((event) => !known.includes(event) && chance(0.2));
		await store.flush([], JSON.stringify(held));
		const batch = shuffled([...fresh, ...fresh.filter(() => chance(0.2))]);
		const expected = young.filter((event) => !known.includes(event) && !held.includes(event));
		await db.sql.begin(async (sql) => {
			await sql`select 1 from reservation where request_id = any (${held.map(({ id }) => id)}) for update`;
			const { fresh: count, busy } = await store.flush(batch, "[]");
			expect([count, busy]).toEqual([expected.length, new Set(held.map(({ id }) => id))]);
		});
		record(expected);
	}
	const rows = await db.sql`select request_id as id from usage_event where instance_id = 'mix'`;
	expect(new Set(rows.map(({ id }) => id))).toEqual(recorded);
	const leases =
		await db.sql`select budget_id as budget, settled_nano_usd::integer as settled from lease where instance_id = 'mix'`;
	expect(new Map(leases.map(({ budget, settled }) => [budget, settled]))).toEqual(charged);
	const { checks } = await reconcile(db.statements);
	expect(checks.filter(({ ok, name }) => !ok && !name.includes("top-up"))).toEqual([]);
});
