import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import {
	createStatusHistory,
	createStatusStore,
	daySinceEpoch,
	type ServiceLevel,
	type StatusHistory,
	type StatusStore,
} from "../../src/status/status-history.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createManualClock, type ManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";

const NOON_MS = Date.parse("2026-11-20T12:00:00Z");
const TODAY = daySinceEpoch(NOON_MS);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MINUTES = 1_440;

let db: TestDatabase;
let store: StatusStore;
let clock: ManualClock;
const open: StatusHistory[] = [];

beforeEach(async () => {
	db = await createTestDatabase();
	store = createStatusStore(db.statements);
	clock = createManualClock(NOON_MS);
});
afterEach(async () => {
	for (const history of open.splice(0)) await history.stop();
	await db.drop();
});

interface Instance {
	readonly history: StatusHistory;
	levels: Record<string, ServiceLevel>;
	cutOff: boolean;
	begun: number;
	running: number;
}

function instance(levels: Record<string, ServiceLevel>): Instance {
	const through = async <T>(call: () => Promise<T>): Promise<T> => {
		made.begun += 1;
		made.running += 1;
		try {
			if (made.cutOff) throw new Error("the connection was lost");
			return await call();
		} finally {
			made.running -= 1;
		}
	};
	const made: Instance = {
		levels,
		cutOff: false,
		begun: 0,
		running: 0,
		history: createStatusHistory({
			store: {
				add: (looks) => through(() => store.add(looks)),
				read: (first, last) => through(() => store.read(first, last)),
				deleteBefore: (day) => through(() => store.deleteBefore(day)),
			},
			clock,
			log: silentLog,
			look: () => new Map(Object.entries(made.levels)),
		}),
	};
	open.push(made.history);
	return made;
}

/** Advances the clock and runs the jobs of these instances that are due. */
async function after(ms: number, ...instances: readonly Instance[]): Promise<void> {
	const begun = instances.map((one) => one.begun);
	clock.advance(ms);
	const idle = () => instances.every((one, place) => one.begun > (begun[place] as number) && one.running === 0);
	await waitFor(async () => {
		if (!idle()) return false;
		await Bun.sleep(1);
		return idle();
	}, "every instance to have written its look");
}

async function minutes(count: number, ...instances: readonly Instance[]): Promise<void> {
	for (let minute = 0; minute < count; minute += 1) await after(MINUTE_MS, ...instances);
}

async function started(levels: Record<string, ServiceLevel>): Promise<Instance> {
	const made = instance(levels);
	await after(0, made);
	return made;
}

const tally = ([operational, degraded, down]: readonly [number, number, number]) => ({ operational, degraded, down });
const shown = ({ history }: Instance, subject: string, day = TODAY) => history.view().subjects.get(subject)?.get(day);

async function stored(subject: string, day = TODAY): Promise<[number, number, number] | undefined> {
	const row = (await store.read(day, day)).find((one) => one.subject === subject);
	return row && [row.operational, row.degraded, row.down];
}

describe("an observed minute of the status", () => {
	test("counts once although several instances observed it", async () => {
		const [a, b] = [await started({ m: "operational" }), await started({ m: "operational" })];
		await minutes(5, a, b);
		expect(await stored("m")).toEqual([5, 0, 0]);
		expect(shown(a, "m")).toBeDefined();
	});

	test("counts once although it is written repeatedly, late or concurrently", async () => {
		const looks = (level: ServiceLevel) =>
			[7, 8, 9].map((minute) => ({ minute: TODAY * DAY_MINUTES + minute, levels: new Map([["s", level]]) }));
		await Promise.all(Array.from({ length: 8 }, () => store.add(looks("down"))));
		await store.add(looks("degraded").slice(1));
		await Promise.all([store.add(looks("operational").slice(2)), store.add(looks("down"))]);
		expect(await stored("s")).toEqual([1, 1, 1]);
	});

	test("is down only if every observing instance saw the service down", async () => {
		const a = await started({ m: "down", n: "down", o: "degraded" });
		const b = await started({ m: "down", n: "operational", o: "operational" });
		await minutes(2, a, b);
		expect([await stored("m"), await stored("n"), await stored("o")]).toEqual([
			[0, 0, 2],
			[2, 0, 0],
			[2, 0, 0],
		]);
		await b.history.stop();
		await minutes(3, a);
		expect([await stored("m"), await stored("n"), await stored("o")]).toEqual([
			[0, 0, 5],
			[2, 0, 3],
			[2, 3, 0],
		]);
		expect(shown(a, "n")).toEqual(tally([2, 0, 3]));
	});

	test("has no data if no instance was running", async () => {
		const a = await started({ m: "operational" });
		await minutes(3, a);
		await a.history.stop();
		clock.advance(20 * MINUTE_MS);
		const b = await started({ m: "down" });
		await minutes(2, b);
		expect(shown(b, "m")).toEqual(tally([3, 0, 2]));
	});

	test("belongs to its day in UTC", async () => {
		const a = await started({ m: "operational" });
		await minutes(1, a);
		await after(11 * HOUR_MS + 57 * MINUTE_MS, a);
		const before = await stored("m");
		await minutes(5, a);
		expect(await stored("m")).toEqual([(before?.[0] as number) + 2, 0, 0]);
		expect(await stored("m", TODAY + 1)).toEqual([3, 0, 0]);
		expect(shown(a, "m", TODAY + 1)).toEqual(tally([3, 0, 0]));
	});
});

describe("the status history without Postgres", () => {
	test("shows its last state, and writes observations once Postgres is back", async () => {
		const a = await started({ m: "operational" });
		await minutes(3, a);
		const readAtMs = clock.wallMs();
		a.cutOff = true;
		a.levels = { m: "down" };
		await minutes(4, a);
		expect(a.history.view().readAtMs).toBe(readAtMs);
		expect(shown(a, "m")).toEqual(tally([3, 0, 0]));
		a.cutOff = false;
		await minutes(1, a);
		expect(shown(a, "m")).toEqual(tally([3, 0, 5]));
		expect(a.history.view().readAtMs).toBe(clock.wallMs());
	});

	test("keeps at most one day of observations to be written", async () => {
		const a = await started({ m: "operational" });
		a.cutOff = true;
		await after(2 * DAY_MINUTES * MINUTE_MS, a);
		a.cutOff = false;
		await minutes(1, a);
		const days = await Promise.all([0, 1, 2].map((more) => stored("m", TODAY + more)));
		expect(days.map((day) => day?.[0] ?? 0)).toEqual([0, 719, 721]);
	});

	test("is empty after a start", async () => {
		const a = instance({ m: "operational" });
		a.cutOff = true;
		await after(0, a);
		expect(a.history.view()).toEqual({ readAtMs: undefined, subjects: new Map() });
		a.cutOff = false;
		await minutes(1, a);
		expect(shown(a, "m")).toEqual(tally([1, 0, 0]));
	});
});

describe("the stored status history", () => {
	const addDay = (day: number) => store.add([{ minute: day * DAY_MINUTES, levels: new Map([["m", "operational"]]) }]);

	test("shows the last 90 days", async () => {
		for (const ago of [90, 89, 88]) await addDay(TODAY - ago);
		const a = await started({ other: "operational" });
		const days = () => [...(a.history.view().subjects.get("m")?.keys() ?? [])].map((day) => TODAY - day).sort();
		expect(days()).toEqual([88, 89]);
		await after(12 * HOUR_MS, a);
		await minutes(1, a);
		expect(days()).toEqual([88]);
	});

	test("stores 400 days", async () => {
		for (const ago of [402, 401, 400, 399]) await addDay(TODAY - ago);
		const a = await started({ m: "operational" });
		const left = async () => (await store.read(TODAY - 500, TODAY)).map(({ day }) => TODAY - day);
		expect(await left()).toEqual([399, 400]);
		await after(12 * HOUR_MS, a);
		await minutes(1, a);
		expect(await left()).toContain(399);
		expect(await left()).not.toContain(400);
	});
});
