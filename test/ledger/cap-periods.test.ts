/** Tests of caps that renew: each period has a budget, which its first grant creates and which is never overspent. */
import { expect, test } from "bun:test";
import type { CapPeriod } from "../../src/keys/cap-period.ts";
import { createKey, getKey, updateKey } from "../../src/keys/key-admin.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { withDatabase } from "../support/database.ts";
import {
	creditedAccount,
	goLive,
	grantsOfFour,
	keyMaker,
	retrying,
	settledEvent,
	storesOf,
	usd,
	wish,
} from "./fixture.ts";

const db = await withDatabase();
const maker = keyMaker(db);
const storeOf = storesOf(db);
const DAY_S = 86_400;

/** POSIX name of the time zone that is `westS` seconds west of Greenwich. */
function zoneOf(westS: number): string {
	const parts = [3600, 60, 1].map((unit, n) => Math.floor(Math.abs(westS) / unit) % (n === 0 ? 1_000 : 60));
	return `XXX${westS < 0 ? "-" : "+"}${parts.map((part) => String(part).padStart(2, "0")).join(":")}`;
}

/** Creates a key whose account's time zone is chosen so that `intoDayS` seconds of today have passed. */
async function cappedKey(cap: number | null, capPeriod: CapPeriod, intoDayS = 12 * 3600) {
	const account = await creditedAccount(db);
	const [row] = await db.sql`select extract(epoch from clock_timestamp())::bigint % ${DAY_S} as into`;
	const westS = Number(row?.into) - intoDayS;
	const setDay = (day: number) =>
		db.sql`update account set time_zone = ${zoneOf(westS - day * DAY_S)} where id = ${account}`;
	await setDay(0);
	const capNanoUsd = cap === null ? null : usd(cap);
	const { id: key } = await createKey(maker, account, { name: "k", capNanoUsd, capPeriod });
	/** The budget of the period that contains the time `offset` from now. */
	const periodAt = async (offset: string, period: CapPeriod = capPeriod) => {
		const [at] =
			await db.sql`select cap_day(${account}, ${period}, clock_timestamp() + ${offset}::interval)::text as day`;
		return `${key}:${period}:${at?.day}`;
	};
	const today = capPeriod === "lifetime" ? key : await periodAt("0");
	return { account, key, today, periodAt, setDay };
}

async function budgetOf(id: string) {
	const [row] =
		await db.sql`select limit_nano_usd as cap, drawn_nano_usd as drawn, lift_seq from budget where id = ${id}`;
	return (
		row && { cap: row.cap === null ? null : Number(row.cap), drawn: Number(row.drawn), lifting: row.lift_seq !== null }
	);
}

test("concurrent first grants in a cap's period stay within the cap together", async () => {
	const { key, today } = await cappedKey(1_000, "day");
	const granted = await grantsOfFour(db, today, () => key);
	expect(granted.filter(([, ofPeriod]) => ofPeriod === 90)).toHaveLength(11);
	expect(await budgetOf(today)).toEqual({ cap: 1_000, drawn: 990, lifting: false });
	// The grants of periods also count in the key's lifetime budget, which does not limit them.
	expect(granted.every(([own]) => own === 90)).toBe(true);
});

test("the first grant of a cap's period is refused as busy while the cap changes", async () => {
	const { key, today } = await cappedKey(1_000, "day");
	const other = await cappedKey(1_000, "day");
	await goLive(db, "patient");
	await db.sql.begin(async (transaction) => {
		await transaction`select 1 from api_key where id = ${key} for update`;
		const [held, free] = await storeOf("patient").grant([wish(today, 10), wish(other.today, 10)]);
		expect(held).toMatchObject({ amount: 0, busy: true });
		expect(free).toMatchObject({ amount: 10, busy: false });
	});
	expect((await storeOf("patient").grant([wish(today, 10)]))[0]).toMatchObject({ amount: 10, available: 990 });
});

test("a cap grants nothing for a past or future period or one of another length", async () => {
	const { key, periodAt, today } = await cappedKey(1_000, "day");
	await goLive(db, "untimely");
	const grant = async (budget: string) => (await storeOf("untimely").grant([wish(budget, 10)]))[0];
	const others = [await periodAt("0", "month"), await periodAt("0", "week")];
	const budgets = [await periodAt("-1 day"), await periodAt("1 day"), ...others];
	for (const budget of budgets) {
		expect(await grant(budget)).toMatchObject({ amount: 0, untimely: true, busy: false });
		expect(await budgetOf(budget)).toBe(undefined);
	}
	const free = await cappedKey(null, "day");
	expect(await grant(free.today)).toMatchObject({ amount: 0, untimely: true, busy: false });
	expect(await grant(today.replace(key, "key_nobody"))).toMatchObject({ amount: 0, untimely: false, busy: false });
	expect(await grant(today)).toMatchObject({ amount: 10, untimely: false });
});

test("a replaced cap period keeps its limit for instances that do not know the change", async () => {
	const { key, today, periodAt } = await cappedKey(100, "day");
	const unused = await cappedKey(100, "day");
	await goLive(db, "not-heard");
	const grant = async (budget: string, amount: number) => (await storeOf("not-heard").grant([wish(budget, amount)]))[0];
	expect(await grant(today, 60)).toMatchObject({ amount: 60 });
	for (const id of [key, unused.key])
		await updateKey(db.statements, { id }, { capPeriod: "week", capNanoUsd: usd(30) });
	expect(await grant(today, 40)).toMatchObject({ amount: 40, untimely: false });
	expect(await grant(today, 1)).toMatchObject({ amount: 0, available: 0 });
	expect(await grant(unused.today, 1)).toMatchObject({ amount: 0, untimely: true });
	const week = await periodAt("0", "week");
	expect(await grant(week, 31)).toMatchObject({ amount: 0, available: 30 });
	expect(await grant(week, 30)).toMatchObject({ amount: 30 });
	// After the cap is daily again, today's budget still has its earlier charges.
	await updateKey(db.statements, { id: key }, { capPeriod: "day", capNanoUsd: usd(110) });
	expect(await grant(today, 11)).toMatchObject({ amount: 0, available: 10 });
});

test("a cap's period grants credit from a minute before its start to an hour after it", async () => {
	const ahead = await cappedKey(1_000, "day", DAY_S - 30);
	const early = await cappedKey(1_000, "day", DAY_S - 120);
	const behind = await cappedKey(1_000, "day", 3_600 - 120);
	const late = await cappedKey(1_000, "day", 3_600 + 120);
	await goLive(db, "margins");
	const grant = async ({ periodAt }: typeof ahead, offset: string) =>
		(await storeOf("margins").grant([wish(await periodAt(offset), 10)]))[0];
	expect(await grant(ahead, "5 minutes")).toMatchObject({ amount: 10, untimely: false });
	expect(await grant(early, "5 minutes")).toMatchObject({ amount: 0, untimely: true });
	expect(await grant(behind, "-1 hour")).toMatchObject({ amount: 10, untimely: false });
	expect(await grant(late, "-2 hours")).toMatchObject({ amount: 0, untimely: true });
});

test("a weekly cap starts only on the first day of a week, also near midnight", async () => {
	const { account, key, setDay } = await cappedKey(1_000, "week", 1_800);
	const firstDays = async () => {
		const [days] = await db.sql`
			select cap_day(${account}, 'week', clock_timestamp())::text as week, cap_day(${account}, 'day', clock_timestamp())::text as today,
				(cap_day(${account}, 'day', clock_timestamp()) - 3)::text as before`;
		return days ?? {};
	};
	for (let day = 0; day < 7; day++) {
		await setDay(day);
		if ((await firstDays()).week === (await firstDays()).today) break;
	}
	const { week, today, before } = await firstDays();
	expect(week).toBe(today);
	await goLive(db, "monday");
	const [middle, first] = await storeOf("monday").grant([
		wish(`${key}:week:${before}`, 10),
		wish(`${key}:week:${week}`, 10),
	]);
	expect(middle).toMatchObject({ amount: 0, untimely: true });
	expect(first).toMatchObject({ amount: 10, untimely: false });
});

test("a grant that is repeated after its cap period returns the first answer", async () => {
	const { periodAt, today, setDay } = await cappedKey(1_000, "day");
	await goLive(db, "lost");
	const lost = wish(today, 100);
	await storeOf("lost").grant([lost]);
	const early = wish(await periodAt("1 day"), 100, 100, { again: true });
	expect((await storeOf("lost").grant([early]))[0]).toMatchObject({ amount: 0, untimely: true });
	await setDay(1);
	const [told, never, fresh] = await storeOf("lost").grant([{ ...lost, again: true }, early]);
	expect(told).toMatchObject({ amount: 100 });
	expect(never).toMatchObject({ amount: 0 });
	expect(fresh).toBe(undefined);
	expect((await storeOf("lost").grant([wish(early.budget, 100)]))[0]).toMatchObject({ amount: 100 });
});

test("a request is charged to its cap period in time, late and after a crash", async () => {
	const { account, key, today, periodAt, setDay } = await cappedKey(1_000, "day");
	const epoch = await goLive(db, "over");
	const store = storeOf("over", epoch);
	await store.grant([wish(today, 600), wish(key, 600), wish(account, 600)]);
	await setDay(1);
	const tomorrow = await periodAt("0");
	expect((await store.grant([wish(tomorrow, 1_000)]))[0]).toMatchObject({ amount: 1_000 });
	const charge = (nano: number, budgets: string[]) => settledEvent(account, key, nano, { budgets });
	expect(await store.flush([charge(250, [today]), charge(100, [today])], "[]")).toMatchObject({ fresh: 2 });
	const lease = async (budget: string) => {
		const [row] =
			await db.sql`select settled_nano_usd as settled from lease where budget_id = ${budget} and instance_id = 'over'`;
		return Number(row?.settled);
	};
	expect([await lease(today), await lease(key), await lease(tomorrow)]).toEqual([350, 350, 0]);
	await retrying(store).close();
	// A late settlement is charged to the budget of the day of its request, not of tomorrow.
	await store.settleLate(JSON.stringify(charge(700, [today])));
	expect(await budgetOf(today)).toMatchObject({ drawn: 1_000 });
	expect(await budgetOf(tomorrow)).toMatchObject({ drawn: 0 });
	const [row] =
		await db.sql`select sum(charged_nano_usd) as charged, sum(written_off_nano_usd) as off from usage_event where key_id = ${key}`;
	expect([Number(row?.charged), Number(row?.off)]).toEqual([1_000, 50]);
	expect(await reconcile(db.statements)).toMatchObject({ ok: true });
	// The unknown period may have had a budget that was spent, so its late settlement is charged nothing.
	await store.settleLate(JSON.stringify(charge(10, [`${key}:day:2001-01-01`])));
	expect(await budgetOf(account)).toMatchObject({ drawn: 1_000 });
});

test("a changed cap applies in the current period, then replaces the lifetime cap", async () => {
	const { account, key, today, periodAt, setDay } = await cappedKey(1_000, "day");
	const epoch = await goLive(db, "change");
	const store = storeOf("change", epoch);
	await store.grant([wish(today, 100)]);
	await updateKey(db.statements, { id: key }, { capNanoUsd: usd(150) });
	expect(await budgetOf(today)).toEqual({ cap: 150, drawn: 100, lifting: false });
	expect((await store.grant([wish(today, 60)]))[0]).toMatchObject({ amount: 0, available: 50, busy: false });
	// A changed cap does not change the budget of a past day, to which late settlements are still charged.
	await setDay(2);
	await updateKey(db.statements, { id: key }, { capNanoUsd: usd(900) });
	expect(await budgetOf(today)).toEqual({ cap: 150, drawn: 100, lifting: false });
	await updateKey(db.statements, { id: key }, { capNanoUsd: usd(150) });
	await db.sql`update account set time_zone = 'UTC' where id = ${account}`;
	expect(await getKey(db.statements, { id: key })).toMatchObject({
		capPeriod: "day",
		capNanoUsd: 150,
		capSpentNanoUsd: 0,
	});
	await setDay(0);
	// A lifetime cap includes everything that the key ever drew.
	await store.grant([wish(key, 100)]);
	await updateKey(db.statements, { id: key }, { capPeriod: "lifetime" });
	expect(await budgetOf(key)).toEqual({ cap: 150, drawn: 100, lifting: false });
	// Restores the monthly cap. The instance uses the lifetime cap until it has applied this change.
	const { seq } = await updateKey(db.statements, { id: key }, { capPeriod: "month" });
	expect(await budgetOf(key)).toEqual({ cap: 150, drawn: 100, lifting: true });
	expect((await store.grant([wish(key, 60)]))[0]).toMatchObject({ amount: 0, busy: true });
	expect((await store.grant([wish(await periodAt("0", "month"), 150)]))[0]).toMatchObject({ amount: 150 });
	await db.sql`select instance_renew(id, epoch, ${seq}, 60000) from instance_now where state = 'live'`;
	// Starts an instance that lacks the change. Only by a database clock that was set forward, its lease is over.
	const late = await goLive(db, "late");
	const behind = Number(seq) - 1;
	await db.sql`update instance_beat set applied_seq = ${behind}, lease_until = lease_until - interval '1 hour' where id = 'late'`;
	expect((await store.grant([wish(key, 60)]))[0]).toMatchObject({ amount: 0, busy: true });
	// Records what a witness reports: the instance was silent for longer than its lease.
	await db.sql`select instance_stand('late', ${late}, null, array['live'], 'silent', null, null)`;
	expect((await store.grant([wish(key, 60)]))[0]).toMatchObject({ amount: 60, available: null });
	expect(await budgetOf(key)).toEqual({ cap: null, drawn: 160, lifting: false });
});
