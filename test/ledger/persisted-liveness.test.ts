import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import type { Statements } from "../../src/db/statements.ts";
import { untilSilent } from "../../src/ledger/lost-journal.ts";
import { createPersistedLiveness } from "../../src/ledger/persisted-liveness.ts";
import { manualClock } from "../keys/manual-clock.ts";

const MINUTE_MS = 60_000;
const SLOW_MS = 20_000;
const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
const uptimeMs = () => Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1_000;

/** What a process says of beat 7 whose forerunner left this note, and what it leaves itself. */
function readWith(text: string | undefined, beat = 7) {
	const note = {
		text,
		read: () => note.text,
		write(written: string) {
			note.text = written;
		},
	};
	const silences = createPersistedLiveness(manualClock(), note);
	const ms = silences.ofMs("one", beat);
	silences.keep(new Set(["one", "one dead"]));
	return { ms, note, silences };
}

const leftBehind = (more: { boot?: string; sinceMs?: number } = {}) =>
	`${JSON.stringify({ boot: more.boot ?? boot, seen: [["one", { beat: 7, sinceMs: more.sinceMs ?? uptimeMs() - MINUTE_MS }]] })}\n`;

test("what one process has seen counts for the next one, and for the one behind that", () => {
	const first = readWith(leftBehind());
	expect(first.ms).toBeGreaterThanOrEqual(MINUTE_MS);
	expect(readWith(first.note.text).ms).toBeGreaterThanOrEqual(first.ms);
	const began = readWith(undefined);
	expect(began.ms).toBeLessThan(SLOW_MS);
	expect(began.note.text).toStartWith(`{"boot":"${boot}"`);
});

const DOUBTFUL: readonly [string, string, number][] = [
	["another beat", leftBehind(), 8],
	["another start of the machine", leftBehind({ boot: "another" }), 7],
	["a moment that is to come, as on a copied machine", leftBehind({ sinceMs: uptimeMs() + MINUTE_MS }), 7],
	["no moment", leftBehind().replace("sinceMs", "since"), 7],
	["what was cut off", leftBehind().slice(0, -1), 7],
	["what is no note", "{}\n", 7],
	["what is none at all", "\n", 7],
];
test.each(DOUBTFUL)("of %s nothing is known", (_what, text, beat) => {
	expect(readWith(text, beat).ms).toBeLessThan(SLOW_MS);
});

test("who was fenced off after a wait has been silent for that long", () => {
	const { note, silences } = readWith(undefined);
	silences.endedWith("one dead", 8, MINUTE_MS);
	silences.keep(new Set(["one", "one dead"]));
	const { silences: next } = readWith(note.text);
	expect(next.ofMs("one dead", 8)).toBeGreaterThanOrEqual(MINUTE_MS);
	expect(next.ofMs("one", 8)).toBeLessThan(SLOW_MS);
});

test("of a thousand epochs the note is written once for all, and of those that have ended nothing stays in it", () => {
	const written: string[] = [];
	const note = { read: () => written.at(-1), write: (text: string) => void written.push(text) };
	const silences = createPersistedLiveness(manualClock(), note);
	const names = Array.from({ length: 1_000 }, (_, epoch) => `${epoch} live`);
	for (let look = 0; look < 3; look += 1) {
		for (const name of names) silences.ofMs(name, 7);
		silences.keep(new Set(names));
	}
	expect(written).toHaveLength(1);
	silences.ofMs("1000 live", 7);
	silences.keep(new Set(["1000 live"]));
	expect(JSON.parse(written.at(-1) as string).seen).toEqual([["1000 live", expect.anything()]]);
});

test("who has been waited for counts for the next process also while another epoch of its instance is waited for", async () => {
	const place = "there";
	const silentMs = uptimeMs() - MINUTE_MS;
	const seen = [[`1 dead ${place}`, { beat: 7, sinceMs: silentMs }]];
	const written: string[] = [];
	const note = {
		read: () => `${JSON.stringify({ boot, seen })}\n`,
		write: (text: string) => void written.push(text),
	};
	const row = { beat: "7", ttl_ms: 10_000, place };
	const statements = (async () => [
		{ ...row, epoch: 1, state: "dead" },
		{ ...row, epoch: 2, state: "live" },
	]) as unknown as Statements;
	const fence = { fenceOff: () => Promise.reject(new Error("nobody is to be fenced off yet")) };
	await expect(
		untilSilent({ statements, fence, clock: systemClock }, "one", {
			...{ graceMs: 1_000, settled: true, note },
			isStopping: () => written.length > 0,
		}),
	).rejects.toThrow("stopping");
	expect(Object.fromEntries(JSON.parse(written[0] as string).seen)).toEqual({
		[`1 dead ${place}`]: { beat: 7, sinceMs: silentMs },
		[`2 live ${place}`]: { beat: 7, sinceMs: expect.any(Number) },
	});
});
