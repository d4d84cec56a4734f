import { expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LONG } from "../support/long-form.ts";
import { runChaos } from "./chaos.ts";
import { type SentRequest, unsent } from "./chat-client.ts";
import { nextMidnight, renewalAt } from "./midnight.ts";
import { dayIn } from "./project-verdict.ts";
import type { Excuse } from "./touched.ts";
import { judgeWarm } from "./warm.ts";

/** Seed of the run. `CHAOS_SEED` repeats a failed run; the long form is `bun run chaos`. */
const SEED = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const FOR_MS = LONG ? 6_000 : 3_000;
/** Number of instances. Each costs the time of its start and its faults. */
const INSTANCES = LONG ? 3 : 2;
/** Minimum activity of a run. With less, the run proves nothing. */
const AT_LEAST = { answers: 40, faults: 3 };
/** Longest pause in milliseconds between a user's requests, which leaves processor time to parallel tests. */
const REST_MS_MAX = 60;
const LOGS = join(tmpdir(), `tollgate-chaos-logs-${SEED}`);

test(`four counts of money agree after ${FOR_MS / 1_000} s of faults (seed ${SEED})`, async () => {
	const result = await runChaos({
		seed: SEED,
		forMs: FOR_MS,
		instances: INSTANCES,
		users: 4,
		restMsMax: REST_MS_MAX,
		logFolder: LOGS,
		atLeast: AT_LEAST,
	});
	const broken = result.findings.filter((finding) => finding.broken.length > 0);
	expect(broken.map(({ claim, broken: examples }) => `${claim}: ${examples.slice(0, 3).join(" | ")}`)).toEqual([]);
	expect(Object.keys(result.faults).length).toBeGreaterThanOrEqual(AT_LEAST.faults);
	expect(result.answers["200 whole"]).toBeGreaterThanOrEqual(AT_LEAST.answers);
	// Claims that may have nothing to check in so short a run: recovered journals, untouched customers, spent caps.
	const rare = /recovered|warm|none left/;
	const empty = result.findings.filter(({ checked, claim }) => checked === 0 && !rare.test(claim));
	expect(empty.map(({ claim }) => claim)).toEqual([]);
}, 180_000);

const WHOLE = { status: 200, complete: true };
const REFUSED = { status: 503, code: "service_unavailable", uuid: "00000000-0000-7000-8000-000000000009" };
const WARM = "503 service_unavailable: warm";
const COLD = "503 service_unavailable: the key was not warm there";
const NO_EXCUSE: readonly Excuse[] = [];

/** Builds a run with refusals of one second each. The last refusal decides whether the claim holds. */
function refusals(
	requests: readonly Partial<SentRequest>[],
	{
		excuses = NO_EXCUSE,
		isSteady = true,
		reached = [] as string[],
		renewedAtMs = undefined as number | undefined,
	} = {},
): Readonly<Record<string, number>> {
	const sent = requests.map((one, at): SentRequest => {
		const times = { sentAtMs: at * 1_000, endMs: at * 1_000 + 100 };
		return { ...unsent({ index: 0 }, { id: "key_1" }, false), ...times, ...one };
	});
	const arrivals = reached.map((requestId) => ({ requestId, arrivedAtMs: 0, prompt: 1, sent: 0, hungUp: false }));
	const renewals = new Map(
		renewedAtMs === undefined ? [] : [["key_1", renewalAt({ timeZone: "UTC", atMs: renewedAtMs })]],
	);
	const { finding, causes } = judgeWarm(sent, arrivals, new Set(isSteady ? ["key_1"] : []), () => excuses, renewals);
	const warm = Object.entries(causes).reduce((sum, [cause, count]) => sum + (cause.endsWith("warm") ? count : 0), 0);
	expect(finding.broken).toHaveLength(warm);
	return causes;
}

test("the verdict of a chaos run counts a refusal that no fault explains", () => {
	const away = { why: "was away", fromMs: 1_200, untilMs: 1_800 };
	expect(refusals([WHOLE, REFUSED])).toEqual({ [WARM]: 1 });
	expect(refusals([WHOLE, {}])).toEqual({ "no answer: warm": 1 });
	expect(refusals([WHOLE, REFUSED], { excuses: [away] })).toEqual({ [WARM]: 1 });
	expect(refusals([WHOLE, REFUSED, WHOLE, REFUSED], { excuses: [away] })).toEqual({ [WARM]: 2 });
});

test("the verdict of a chaos run excuses a refusal after a fault of the instance", () => {
	const during = { why: "was away", fromMs: 1_050, untilMs: 1_800 };
	const between = { why: "was away", fromMs: 200, untilMs: 900 };
	expect(refusals([REFUSED])).toEqual({ [COLD]: 1 });
	const away = { "503 service_unavailable: the instance was away": 1 };
	expect(refusals([WHOLE, REFUSED], { excuses: [during] })).toEqual(away);
	expect(refusals([WHOLE, REFUSED], { excuses: [between] })).toEqual({ [COLD]: 1 });
	expect(refusals([{ ...WHOLE, member: 1 }, REFUSED])).toEqual({ [COLD]: 1 });
	expect(refusals([WHOLE, { ...REFUSED, sentAtMs: 31_000, endMs: 31_100 }])).toEqual({ [COLD]: 1 });
});

test("the verdict of a chaos run excuses a refusal that reached the model server", () => {
	expect(refusals([WHOLE, { ...REFUSED, status: 502 }], { reached: [REFUSED.uuid] })).toEqual({});
	expect(refusals([WHOLE, { left: true }])).toEqual({});
	expect(refusals([WHOLE, REFUSED], { isSteady: false })).toEqual({});
});

test("the verdict of a chaos run expects a key that worked on the new day to work on", () => {
	expect(refusals([WHOLE, REFUSED], { renewedAtMs: 500 })).toEqual({ [COLD]: 1 });
	expect(refusals([REFUSED, WHOLE, REFUSED], { renewedAtMs: 500 })).toEqual({ [COLD]: 1, [WARM]: 1 });
});

test("at each hour of the day, midnight occurs in some time zone", () => {
	for (const fromMs of [Date.now(), Date.UTC(2027, 2, 28, 0, 30), Date.UTC(2028, 1, 29, 23, 59, 59)]) {
		const { timeZone, atMs } = nextMidnight(fromMs);
		expect(atMs).toBeGreaterThan(fromMs);
		expect(atMs).toBeLessThanOrEqual(fromMs + 3_600_000);
		expect(dayIn(timeZone, atMs)).not.toBe(dayIn(timeZone, atMs - 1));
	}
});
