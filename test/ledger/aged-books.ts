import { systemClock } from "../../src/base/clock.ts";
import { foldUsage } from "../../src/console/usage/usage-fold.ts";
import type { SettledEvent } from "../../src/ledger/event.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { removeUsage } from "../../src/ledger/removal.ts";
import { sealDays, verifyDays } from "../../src/ledger/seals.ts";
import { withDatabase } from "../support/database.ts";
import { backdate, DATED, giving, goLive, makeAccount, settledEvent, wish } from "./fixture.ts";

/** Ages in days of the requests in the books. Some exceed the retention of the tests, some do not. */
const DAYS_AGO = [12, 11, 10, 5, 3];
export const KEPT_DAYS = 8;
export const REQUESTS_A_DAY = 4;
const CHARGED = 10;
const DAY_MS = 86_400_000;

/** Creates books with one ended epoch per day of `DAYS_AGO`, with requests settled, sealed and in the hourly sums. */
export async function agedBooks() {
	const db = await withDatabase();
	const { statements, sql } = db;
	const deps = { statements, clock: systemClock };
	await makeAccount(db, "acc", 100_000, { key: 50_000 });
	const noon = (days: number) => Math.floor(Date.now() / DAY_MS) * DAY_MS - days * DAY_MS + DAY_MS / 2;
	const others = [
		["instance_beat", "ended_at"],
		["instance_beat", "started_at"],
		["control_log", "at"],
	] as const;
	const ageBy = (days: number) => backdate(db, days, [...DATED, ...others]);
	const settled: { readonly daysAgo: number; readonly epoch: number; readonly event: SettledEvent }[] = [];
	for (const daysAgo of DAYS_AGO) {
		const epoch = await goLive(db, "i");
		const store = createPgLedgerStore({ statements: db.ledger }, "i", epoch);
		await store.grant([wish("acc", 1_000), wish("key", 1_000)]);
		for (let n = 0; n < REQUESTS_A_DAY; n++) {
			const event = settledEvent("acc", "key", CHARGED + n, { at: noon(daysAgo) + n });
			await store.flush([event], "[]");
			settled.push({ daysAgo, epoch, event });
		}
		await store.giveBack([giving("acc", 100)]);
		await store.close();
		await ageBy(daysAgo);
	}
	await sql`select usage_fold()`;
	for (let days = 1; days > 0; ) days = await sealDays(deps);
	await sql`update sealed_day set sealed_at = (day + 1)::timestamp at time zone 'UTC' + interval '1 hour'`;

	return {
		db,
		statements,
		sql,
		deps,
		settled,
		backdate: ageBy,
		async settle(event: SettledEvent, epoch: number): Promise<void> {
			const store = createPgLedgerStore({ statements: db.ledger }, "i", epoch);
			if ((await store.flush([event], "[]")).late) await store.settleLate(JSON.stringify(event));
		},
		/** SQL that makes `usage_before` two hours older, so that the removal's wait is over. */
		hoursLater: () => sql`update removal set usage_said_at = usage_said_at - interval '2 hours'`,
		async removeAll(days = KEPT_DAYS): Promise<number> {
			await removeUsage(deps, days, false);
			await this.hoursLater();
			let removed = 0;
			for (let now = 1; now > 0; removed += now) now = await removeUsage(deps, days, false);
			return removed;
		},
		async verify(): Promise<void> {
			await sql`delete from seal_round`;
			for (let done = false; !done; ) {
				await verifyDays(deps, 1_000);
				const [row] = await sql`
					select not exists (select 1 from sealed_day d where d.day >= r.day) as done from seal_round r`;
				done = row?.done;
			}
			await verifyDays(deps, 1_000);
		},
		broken: async () => (await reconcile(statements)).checks.filter(({ ok }) => !ok).map(({ name }) => name),
		fold: () => foldUsage(statements),
		hours: async () => [
			...(await sql`select * from usage_hour order by hour, account_id, key_id`),
			...(await sql`select * from service_hour order by hour, model, code`),
		],
		spent() {
			return sql`select id, drawn_nano_usd, written_off_nano_usd from budget order by id`;
		},
		ids: async () => (await sql`select request_id from usage_event`).map(({ request_id }) => request_id),
	};
}
