import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { newUuid } from "../../src/base/id.ts";
import { silentLog } from "../../src/base/log.ts";
import type { AdmittedEvent } from "../../src/ledger/event.ts";
import type { Journal } from "../../src/ledger/journal.ts";
import { openJournalDisk } from "../../src/ledger/journal-disk.ts";
import { createLedger, type Hold, type Ledger } from "../../src/ledger/ledger.ts";
import { createSlices } from "../../src/ledger/slices.ts";
import { createWriter, type Writer } from "../../src/ledger/writer.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { generousStore } from "../support/generous-store.ts";
import { admittedEvent, openTestJournal, outcome, replayedJournal, usd } from "./fixture.ts";

/** Builds a ledger with ample credit and a writer that needs no database. */
async function ledgerOver(
	journal: Journal,
	{ account, key }: Pick<AdmittedEvent, "account" | "key">,
): Promise<{ ledger: Ledger; writer: Writer }> {
	const clock = systemClock;
	const writer = createWriter(
		{ store: generousStore(), clock, log: silentLog },
		{ flushIntervalMs: 100, flushAt: 256, batchMax: 1_000, queueMax: 10_000_000 },
	);
	const slices = createSlices({ store: generousStore(), clock, log: silentLog, newUuid }, { horizonMs: 40_000 });
	const ledger = createLedger(
		{ slices, journal, writer, close: async () => {}, clock, log: silentLog },
		{ epoch: 1, mode: "process" },
	);
	await ledger.draw({ account, key }, nanoUsd(1e14));
	return { ledger, writer };
}

const ACCOUNT = "account";
const KEY = "key";
const REQUESTS = 60;
/** Maximum number of segments on disk: those with running requests, the current one, and one that is being removed. */
const SEGMENTS_MAX = 6;

test("a long request keeps few journal segments, and its progress survives a crash", async () => {
	const path = temporaryFolder();
	const disk = openJournalDisk(path, { create: true });
	const { journal } = openTestJournal(disk, systemClock, { segmentBytesMax: 1 });
	const { ledger, writer } = await ledgerOver(journal, { account: ACCOUNT, key: KEY });
	const long = ledger.reserve({ ...admittedEvent(ACCOUNT, KEY), reserved: usd(1_000) }) as Hold;
	ledger.progress(long, { delivered: usd(10), bound: usd(20), promptTokens: 1, completionTokens: 2 });
	for (let sent = 0; sent < REQUESTS; sent++) {
		const hold = ledger.reserve({ ...admittedEvent(ACCOUNT, KEY), reserved: usd(5) }) as Hold;
		ledger.settle(hold, outcome(3));
		await writer.drain();
		expect(disk.list().length).toBeLessThanOrEqual(SEGMENTS_MAX);
	}

	// Closes the ledger while the request runs, as if the process had crashed.
	expect(await ledger.retire(0)).toBe(false);
	const { recovered } = replayedJournal(openJournalDisk(path, { create: false }));
	expect(recovered).toMatchObject([
		{ id: long.admitted.id, reserved: 1_000, charged: 10, promptTokens: 1, completionTokens: 2, ending: "crashed" },
	]);
});

test("many long requests are copied to new segments however fast these fill up", async () => {
	const many = 500;
	const folder = temporaryFolder();
	const disk = openJournalDisk(folder, { create: true });
	const { journal } = openTestJournal(disk, systemClock, { segmentBytesMax: 4_000 });
	const { ledger, writer } = await ledgerOver(journal, { account: ACCOUNT, key: KEY });
	const reserve = () => ledger.reserve({ ...admittedEvent(ACCOUNT, KEY), reserved: usd(5) }) as Hold;
	const long = Array.from({ length: many }, reserve);
	const oldestOf = () => Math.min(...long.map((hold) => hold.segment));
	const firstAt = oldestOf();
	// Each new request copies four old records, so the oldest segment is at most two rounds old.
	for (let sent = 0; sent < many / 2; sent++) ledger.settle(reserve(), outcome(3));
	await writer.drain();
	expect(oldestOf()).toBeGreaterThan(firstAt);
	const kept = disk.list().length;
	for (let sent = 0; sent < many; sent++) ledger.settle(reserve(), outcome(3));
	await writer.drain();
	expect(disk.list().length).toBeLessThanOrEqual(kept + SEGMENTS_MAX);

	expect(await ledger.retire(0)).toBe(false);
	const { recovered } = replayedJournal(openJournalDisk(folder, { create: false }));
	expect(new Set(recovered.map(({ id }) => id))).toEqual(new Set(long.map((hold) => hold.admitted.id)));
});
