import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { newUuid } from "../../src/base/id.ts";
import type { Statements } from "../../src/db/statements.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { sealDays, verifyDays } from "../../src/ledger/seals.ts";
import { rolledBack, withDatabase } from "../support/database.ts";
import { waitFor } from "../support/wait.ts";
import { backdate, DATED, giving, goLive, makeAccount, settledEvent, wish } from "./fixture.ts";

const REQUESTS_A_DAY = 4;
const NOBODY = "00000000-0000-0000-0000-000000000000";
/** Ages of days with rows at noon that can be sealed at any time (yesterday only from one o'clock on). */
const DAYS_AGO = [4, 3, 2];
/** Read once, because the date may change during the test. */
const TODAY = new Date().toISOString().slice(0, 10);

const db = await withDatabase();
await makeAccount(db, "acc", 100_000, { key: 50_000 });
await makeAccount(db, "quiet", 0, {});
for (const [index, id] of ["i", "j", "k"].entries()) {
	await goLive(db, id);
	const store = createPgLedgerStore({ statements: db.ledger }, id, 1);
	await store.grant([wish("acc", 1_000), wish("key", 1_000)]);
	for (let n = 0; n < REQUESTS_A_DAY; n++) await store.flush([settledEvent("acc", "key", 10 + n)], "[]");
	await store.giveBack([giving("acc", 100)]);
	// Ends two of the epochs. The third one stays live and also has requests of today.
	if (id !== "k") await store.close();
	await backdate(db, DAYS_AGO[index] ?? 0, DATED, `timestamptz '${TODAY} 00:00Z'`);
	if (id === "k") await store.flush([settledEvent("acc", "key", 5)], "[]");
}

function json(value: unknown): string {
	return JSON.stringify(value);
}

interface Books {
	readonly statements: Statements;
	readonly run: (statement: string) => Promise<Record<string, unknown>[]>;
	readonly seal: () => Promise<number>;
	readonly verify: (stepRows?: number) => Promise<void>;
	readonly broken: () => Promise<string[]>;
}

/** Runs `work` in a transaction that is rolled back, so that every test starts from the same books. */
async function onBooks(work: (books: Books) => Promise<void>): Promise<void> {
	await rolledBack(db.sql, async (transaction, statements) => {
		const deps = { statements, clock: systemClock };
		await work({
			statements,
			run: (statement) => transaction.unsafe(statement),
			async seal() {
				let days = 0;
				// Repeats the call, because a call may end early on a busy machine.
				for (let more = await sealDays(deps); more > 0; more = await sealDays(deps)) days += more;
				return days;
			},
			async verify(stepRows = 1_000) {
				await transaction`delete from seal_round`;
				while ((await verifyDays(deps, stepRows)) > 0);
			},
			broken: async () => (await reconcile(statements)).checks.filter(({ ok }) => !ok).map(({ name }) => name),
		});
	});
}

const SEALED = "every closed day matches its seal";
const CHAIN = "each seal matches the previous seal";
const OLDEST = "select request_id from usage_event order by settled_at limit 1";
const DAYS = `select date '${TODAY}' - day as ago, usage_rows, charged_nano_usd, top_up_nano_usd, adjustment_nano_usd,
	granted_nano_usd, returned_nano_usd, encode(seal, 'hex') as seal, problem from sealed_day order by day`;

test("the sealing job seals past days in order, with their sums", () =>
	onBooks(async ({ seal, run, broken }) => {
		expect(await seal()).toBeGreaterThanOrEqual(3);
		const day = { usage_rows: "4", charged_nano_usd: "46", granted_nano_usd: "2000", returned_nano_usd: "100" };
		expect((await run(DAYS)).slice(0, 3)).toMatchObject([
			{ ago: 4, ...day, adjustment_nano_usd: "100000", problem: null },
			{ ago: 3, ...day, adjustment_nano_usd: "0" },
			{ ago: 2, ...day },
		]);
		expect(await broken()).toEqual([]);
		expect(await seal()).toBe(0);
	}));

test("the sealing job makes the same seal in steps of any size", async () => {
	const seals: unknown[] = [];
	await onBooks(async ({ seal, run }) => {
		await seal();
		seals.push(await run(DAYS));
	});
	await onBooks(async ({ statements, run, broken }) => {
		let steps = 0;
		for (let state = "more"; state === "more" || state === "sealed"; steps++) {
			const [row] = await statements<{ state: string }>`select state from books_seal(1)`;
			state = row?.state ?? "";
			expect(await broken()).toEqual([]);
		}
		expect(steps).toBeGreaterThan(3 * REQUESTS_A_DAY);
		seals.push(await run(DAYS));
	});
	expect(seals[1]).toEqual(seals[0]);
});

test("the verification of seals reports a changed row until it is repaired", () =>
	onBooks(async ({ seal, run, verify, broken }) => {
		await seal();
		await run(`update usage_event set model = 'dearer' where request_id = (${OLDEST})`);
		expect(await broken()).toEqual([]);
		await verify();
		expect(await broken()).toEqual([SEALED]);
		await run("update usage_event set model = 'm' where model = 'dearer'");
		await verify();
		expect(await broken()).toEqual([]);
	}));

const copyOfOldest = (settledAt: string) => `
	insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
		reserved_nano_usd, charged_nano_usd, basis, ending, status, admitted_at, settled_at)
	select gen_random_uuid(), account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
		reserved_nano_usd, 0, basis, ending, status, admitted_at, ${settledAt} from usage_event where request_id = (${OLDEST})`;

const changes: Record<string, string> = {
	"a changed charge": `update usage_event set charged_nano_usd = charged_nano_usd - 1 where request_id = (${OLDEST})`,
	"a deleted row": `delete from usage_event where request_id = (${OLDEST})`,
	"an additional row": copyOfOldest("settled_at"),
	"a row with an earlier date than all others": copyOfOldest("'2020-01-01'"),
	"usage moved to another account": `update usage_event set account_id = 'quiet' where request_id = (${OLDEST})`,
	"a changed duration of a request": `update usage_event set duration_ms = 31 where request_id = (${OLDEST})`,
	"a changed note of a ledger entry": "update ledger_entry set note = 'gift'",
	"a changed amount of a ledger entry": "update ledger_entry set amount_nano_usd = amount_nano_usd + 1",
	"a ledger entry with an earlier date than all others": `insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, created_at)
		values ('x', 'acc', 'adjustment', 5, 'x', 'x', '2020-01-01')`,
	"a deleted sealed lease": "delete from lease where sealed and budget_id = 'acc'",
	"a changed sum of a sealed lease": "update sealed_budget set spent_nano_usd = 1 where budget_id = 'key'",
};
for (const [what, statement] of Object.entries(changes)) {
	test(`the verification of seals detects ${what}`, () =>
		onBooks(async ({ seal, run, verify, broken }) => {
			await seal();
			await verify(1);
			expect(await broken()).toEqual([]);
			await run(statement);
			await verify(1);
			expect(await broken()).toContain(SEALED);
		}));
}

test("the verification of seals starts again an hour after its last start", () =>
	onBooks(async ({ statements, seal, run, broken }) => {
		const read = () => verifyDays({ statements, clock: systemClock }, 1_000);
		await seal();
		expect(await read()).toBeGreaterThan(3 * REQUESTS_A_DAY);
		await run(`update usage_event set model = 'dearer' where request_id = (${OLDEST})`);
		expect(await read()).toBe(0);
		await run("update seal_round set started_at = now() - interval '61 minutes'");
		expect(await read()).toBeGreaterThan(3 * REQUESTS_A_DAY);
		expect(await broken()).toEqual([SEALED]);
	}));

test("the verification of seals detects a row that was changed together with its seal", () =>
	onBooks(async ({ seal, run, verify, broken }) => {
		await seal();
		await run(`update usage_event set model = 'dearer' where request_id = (${OLDEST})`);
		await run(`
			update sealed_day d set usage_hash = u.hash
			from books_usage('-infinity', '${NOBODY}', (select min(day) + 1 from sealed_day)::timestamp at time zone 'UTC', 1000, ''::bytea) u
			where d.day = (select min(day) from sealed_day)`);
		await run("update sealed_day d set seal = books_seal_of(d, null) where d.day = (select min(day) from sealed_day)");
		await verify();
		expect(await broken()).toEqual([CHAIN]);
	}));

for (const which of ["min(day)", "min(day) + 1", "max(day)"]) {
	test(`the verification of seals detects a missing day: ${which}`, () =>
		onBooks(async ({ seal, run, broken }) => {
			await seal();
			await run(`delete from sealed_day where day = (select ${which} from sealed_day)`);
			const noSum = "the spending of leases matches the seals of their days";
			expect((await broken()).filter((name) => name !== noSum)).toEqual([CHAIN]);
		}));
}

test("the sealing job seals leases of ended epochs, and again after a late settlement", () =>
	onBooks(async ({ seal, run, verify, broken }) => {
		const sealed = async () =>
			(await run("select budget_id || instance_id as id from lease where sealed order by 1")).map(({ id }) => id);
		await seal();
		expect(await sealed()).toEqual(["acci", "accj", "keyi", "keyj"]);
		const late = { ...settledEvent("acc", "key", 77), id: newUuid() };
		await run(`select ledger_settle_late('i', 1, '${json(late)}'::json)`);
		expect(await sealed()).toEqual(["accj", "keyj"]);
		expect(await broken()).toEqual([]);
		// Moves the late settlement to the last hour of the day before yesterday, after that day's other rows.
		const lately = "date_trunc('day', now(), 'UTC') - interval '25 hours'";
		await run(`update usage_event set settled_at = ${lately} where request_id = '${late.id}'`);
		await run(`update lease_op set at = ${lately} where instance_id = 'i' and amount_nano_usd = 77`);
		await run("truncate sealed_day, seal_cursor, sealed_lease, sealed_budget");
		await run("update lease set sealed = false");
		await seal();
		expect(await sealed()).toEqual(["acci", "accj", "keyi", "keyj"]);
		await verify();
		expect(await broken()).toEqual([]);
	}));

test("the sealing job lets a late settlement replace a sealed request attested as lost", () =>
	onBooks(async ({ seal, run, verify, broken }) => {
		const id = newUuid();
		await run(`
			insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
				reserved_nano_usd, charged_nano_usd, basis, ending, status, admitted_at, settled_at)
			select '${id}', account_id, key_id, instance_id, epoch, model, '', endpoint, false, 50, 0, 'recovered', 'crashed', 500,
				admitted_at, settled_at from usage_event where request_id = (${OLDEST})`);
		await seal();
		await run(`select ledger_settle_late('i', 1, '${json({ ...settledEvent("acc", "key", 50), id })}'::json)`);
		await verify();
		expect(await broken()).toEqual([]);
		expect(await run(`select charged_nano_usd as charged from usage_event where request_id = '${id}'`)).toEqual([
			{ charged: "50" },
		]);
	}));

test("no request is recorded in a closed day if the clock goes back", () =>
	onBooks(async ({ statements, seal, run }) => {
		await seal();
		// Simulates a day that was closed while the clock was ahead.
		await run("update seal_cursor set closed_until = now() + interval '1 day'");
		const store = createPgLedgerStore({ statements }, "k", 1);
		await store.flush([settledEvent("acc", "key", 5)], "[]");
		await store.grant([wish("acc", 10)]);
		await run("select ledger_book('late', 'acc', 'adjustment', 5, 'late', 'test', '', false)");
		await run(`select ledger_settle_late('i', 1, '${json(settledEvent("acc", "key", 7))}'::json)`);
		expect(
			await run(`
				select (select count(*) from usage_event u where u.settled_at = s.closed_until)::integer as usage,
					(select count(*) from lease_op o where o.at = s.closed_until)::integer as operations,
					(select count(*) from ledger_entry e where e.created_at = s.closed_until)::integer as entries from seal_cursor s`),
		).toEqual([{ usage: 2, operations: 3, entries: 1 }]);
	}));

test("the sealing job closes a day an hour after its end if no old transaction is open", async () => {
	const closed = async (end: string, margin: string) => {
		const [row] = await db.statements<{ closed: boolean }>`
			select books_closed(${end}::timestamptz, ${margin}::interval) as closed`;
		return row?.closed;
	};
	const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
	expect(await db.sql`select books_closed(${ago(61)}) as late, books_closed(${ago(59)}) as early`).toMatchObject([
		{ late: true, early: false },
	]);
	const end = await db.sql.begin(async (transaction) => {
		await transaction`select 1`;
		const [row] = await db.sql`select clock_timestamp()::text as at`;
		expect(await closed(row?.at, "0")).toBe(false);
		return row?.at;
	});
	// Open transactions of other databases, such as those of other tests, delay the closing too.
	await waitFor(async () => (await closed(end, "0")) === true, "all transactions from before to end", 70_000);
}, 90_000);

test("the sealing job runs on one of two consoles", async () => {
	await db.sql`select books_begin()`;
	await db.sql.begin(async (transaction) => {
		await transaction`select 1 from seal_cursor for update`;
		const [row] = await db.statements<{ state: string }>`select state from books_seal(10)`;
		expect(row?.state).toBe("busy");
	});
});
