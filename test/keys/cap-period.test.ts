import { expect, test } from "bun:test";
import { extraBudgets } from "../../src/keys/cap-budgets.ts";
import { type CapPeriod, isTimeZone, periodAt } from "../../src/keys/cap-period.ts";
import { setAccountFields, setKeyFields } from "../../src/keys/key-entry.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { withDatabase } from "../support/database.ts";
import { plainAccountFields, plainKey, plainKeyFields } from "../support/plain-key.ts";
import { createRandom } from "../support/random.ts";

const db = await withDatabase();
const PERIODS = ["day", "week", "month"] as const;
const HOUR_MS = 3_600_000;
const at = (iso: string) => Date.parse(iso);

test("a cap's day has 23 or 25 hours when the clocks change", () => {
	const hours = (zone: string, iso: string) => {
		const { fromMs, untilMs } = periodAt("day", zone, at(iso));
		return (untilMs - fromMs) / HOUR_MS;
	};
	expect(hours("Europe/Berlin", "2026-03-29T12:00:00Z")).toBe(23);
	expect(hours("Europe/Berlin", "2026-10-25T12:00:00Z")).toBe(25);
	expect(hours("America/Sao_Paulo", "2018-11-04T12:00:00Z")).toBe(23);
	expect(hours("UTC", "2026-10-25T12:00:00Z")).toBe(24);
	expect(periodAt("day", "America/Sao_Paulo", at("2018-11-04T03:30:00Z"))).toMatchObject({
		firstDay: "2018-11-04",
		fromMs: at("2018-11-04T03:00:00Z"),
	});
	expect(periodAt("week", "Asia/Kathmandu", at("2026-11-22T18:14:59Z")).firstDay).toBe("2026-11-16");
	expect(periodAt("week", "Asia/Kathmandu", at("2026-11-22T18:15:00Z")).firstDay).toBe("2026-11-23");
	expect(periodAt("month", "UTC", at("2027-02-28T23:59:59Z"))).toEqual({
		firstDay: "2027-02-01",
		fromMs: at("2027-02-01T00:00:00Z"),
		untilMs: at("2027-03-01T00:00:00Z"),
	});
});

test("gateway and database compute the same cap periods in every time zone", async () => {
	const random = createRandom(16);
	const zones = ["UTC", ...Intl.supportedValuesOf("timeZone")];
	const asked: { period: CapPeriod; zone: string; ms: number; day: string }[] = [];
	for (const zone of zones) {
		for (const period of PERIODS) {
			const ms = at("2020-01-01T00:00:00Z") + random.int(0, 12 * 365 * 24 * 3600) * 1000;
			const span = periodAt(period, zone, ms);
			expect(span.fromMs <= ms && ms < span.untilMs).toBe(true);
			const next = periodAt(period, zone, span.untilMs);
			expect(next.fromMs).toBe(span.untilMs);
			expect(periodAt(period, zone, span.untilMs - 1)).toEqual(span);
			asked.push({ period, zone, ms, day: span.firstDay }, { period, zone, ms: span.untilMs, day: next.firstDay });
		}
	}
	const rows = await db.sql`
		select x.zone, x.period, x.ms, x.day, date_trunc(x.period, to_timestamp(x.ms / 1000.0) at time zone x.zone)::date::text as there
		from json_to_recordset(${JSON.stringify(asked)}::text::json) as x(period text, zone text, ms double precision, day text)`;
	expect(rows.filter(({ day, there }) => day !== there)).toEqual([]);
	expect(rows.length).toBe(zones.length * PERIODS.length * 2);
});

test("a request counts in the cap period in which it was admitted", () => {
	const key = plainKey({ capNanoUsd: nanoUsd(5), capPeriod: "day" });
	const midnight = at("2026-11-23T00:00:00Z");
	expect(extraBudgets(key, midnight - 1)).toEqual(["key_1:day:2026-11-22"]);
	const first = extraBudgets(key, midnight);
	expect(first).toEqual(["key_1:day:2026-11-23"]);
	expect(extraBudgets(key, midnight + 1)).toBe(first as readonly string[]);
	expect(extraBudgets(key, midnight - 1)).toEqual(["key_1:day:2026-11-22"]);
	setAccountFields(key.account, { ...plainAccountFields, timeZone: "Pacific/Auckland" });
	expect(extraBudgets(key, midnight - 1)).toEqual(["key_1:day:2026-11-23"]);
	setKeyFields(key, plainKeyFields("key_1", { capNanoUsd: nanoUsd(5), capPeriod: "month" }));
	expect(extraBudgets(key, midnight)).toEqual(["key_1:month:2026-11-01"]);
	setKeyFields(key, plainKeyFields("key_1", { capPeriod: "month" }));
	expect(extraBudgets(key, midnight)).toBe(undefined);
	setKeyFields(key, plainKeyFields("key_1", { capNanoUsd: nanoUsd(5) }));
	expect(extraBudgets(key, midnight)).toBe(undefined);
});

test("a cap accepts names of IANA time zones and refuses offsets", () => {
	for (const zone of ["UTC", "Europe/Berlin"]) expect(isTimeZone(zone)).toBe(true);
	for (const zone of ["+02:00", "XXX-2", "Mars/Olympus", "", "europe/berlin"]) expect(isTimeZone(zone)).toBe(false);
});
