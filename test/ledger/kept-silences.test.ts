import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createKeptSilences } from "../../src/ledger/kept-silences.ts";
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
	const silences = createKeptSilences(manualClock(), note);
	return { ms: silences.ofMs("one", beat), note, silences };
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
	const { silences: next } = readWith(note.text);
	expect(next.ofMs("one dead", 8)).toBeGreaterThanOrEqual(MINUTE_MS);
	expect(next.ofMs("one", 8)).toBeLessThan(SLOW_MS);
});
