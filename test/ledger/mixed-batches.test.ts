import { expect, test } from "bun:test";
import type { SettledEvent } from "../../src/ledger/event.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { USAGE_FIELD_NAMES, usageField } from "../../src/ledger/usage-fields.ts";
import { withDatabase } from "../support/database.ts";
import { createRandom } from "../support/random.ts";
import { goLive, makeAccount, settledEvent, usd, wish } from "./fixture.ts";

const db = await withDatabase();

const ROUNDS = 40;
const GRANTED = 1_000_000;
const DAY_MS = 86_400_000;

test("a flush records new settlements once and skips known and locked ones", async () => {
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

/** Extreme values of each field of a settlement, including null where the field is optional. */
const SAYS = {
	model: ["m-1", 'a "model", {with} a \\ and\nNULL', "größe"],
	card: ["card-1", "NULL", ""],
	endpoint: ["chat", "rerank"],
	streamed: [true, false],
	batch: [undefined, "{}"],
	reserved: [usd(100), usd(200)],
	charged: [usd(0), usd(7)],
	off: [usd(0), usd(Number.MAX_SAFE_INTEGER)],
	basis: ["exact", "estimated"],
	ending: ["finished", "client_left"],
	status: [200, 499],
	promptTokens: [0, 5],
	cachedTokens: [0, 4],
	completionTokens: [0, 6],
	reasoningTokens: [0, 2],
	units: [0, 9],
	replica: [null, "r1", "a\\"],
	first: [null, 0.125],
	ms: [1e-7, 30, 1e12],
	budgets: [undefined, ["say-more"]],
} satisfies Said;

/** Type that requires values for every field of a settlement, so that a new field fails to compile here. */
type Said = {
	readonly [Name in Exclude<keyof SettledEvent, "id" | "account" | "key" | "at">]-?: readonly SettledEvent[Name][];
};

/** SQL that selects each field under its name in settlements. Amounts are numbers. */
const SELECTED = USAGE_FIELD_NAMES.map(usageField)
	.map(({ column, type }, nth) => {
		const value =
			type === "bigint"
				? `${column}::float8`
				: type === "timestamptz"
					? `books_micros(${column})::float8 / 1000`
					: column;
		return `${value} as "${USAGE_FIELD_NAMES[nth]}"`;
	})
	.join(", ");

async function expectRows(events: readonly SettledEvent[]): Promise<void> {
	const rows = await db.sql.unsafe(`select ${SELECTED} from usage_event where request_id = any ($1)`, [
		events.map(({ id }) => id),
	]);
	const recorded = new Map(rows.map((row) => [row.id, row]));
	for (const event of events)
		expect<unknown>(recorded.get(event.id)).toEqual({
			...event,
			batch: event.batch ?? null,
			budgets: event.budgets ?? null,
		});
}

test("a flush records each field of a settlement, whatever else its batch contains", async () => {
	const { int, pick, chance, shuffled } = createRandom(12);
	await makeAccount(db, "say", 9_000_000, { "say-key": null, "say-more": null });
	await goLive(db, "say");
	const store = createPgLedgerStore({ statements: db.ledger }, "say", 1);
	await store.grant(["say", "say-key", "say-more"].map((name) => wish(name, GRANTED)));
	let before: SettledEvent[] = [];
	for (let round = 0; round < ROUNDS; round++) {
		const alike: Partial<SettledEvent> = Object.fromEntries(
			Object.entries(SAYS).flatMap(([name, values]) => (chance(0.5) ? [[name, pick<unknown>(values)]] : [])),
		);
		const events = Array.from({ length: int(1, 9) }, () => {
			const own = Object.fromEntries(Object.entries(SAYS).map(([name, values]) => [name, pick<unknown>(values)]));
			return settledEvent("say", "say-key", 0, { at: Date.now() - int(0, 1), ...own, ...alike });
		});
		// Adds known settlements and duplicates, which a flush must not record again.
		const again = [...(chance(0.3) ? before : []), ...events].filter(() => chance(0.3));
		await store.flush(shuffled([...events, ...again]), "[]");
		before = events;
		await expectRows(events);
	}
	await expect(store.flush([settledEvent("say", "say-key", 0, { model: "a\0b" })], "[]")).rejects.toThrow();
});

test("a flush records each field of a late settlement", async () => {
	const { pick } = createRandom(13);
	await makeAccount(db, "late", 9_000_000, { "late-key": null, "late-more": null });
	await goLive(db, "late");
	const store = createPgLedgerStore({ statements: db.ledger }, "late", 1);
	await store.close();
	const events = Array.from({ length: ROUNDS }, () => {
		const own = Object.fromEntries(Object.entries(SAYS).map(([name, values]) => [name, pick<unknown>(values)]));
		return settledEvent("late", "late-key", 0, { at: Date.now(), ...own, budgets: pick([undefined, ["late-more"]]) });
	});
	for (const event of events) await store.settleLate(JSON.stringify(event));
	await expectRows(events);
});
