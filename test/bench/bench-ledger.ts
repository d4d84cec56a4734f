/** A ledger for steps that need one: credit without end, a writer whose batches go nowhere. */
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { newUuid } from "../../src/base/id.ts";
import { silentLog } from "../../src/base/log.ts";
import type { AdmittedEvent } from "../../src/ledger/event.ts";
import { createJournal, type Journal } from "../../src/ledger/journal.ts";
import { openJournalDisk } from "../../src/ledger/journal-disk.ts";
import { createLedger, type Ledger } from "../../src/ledger/ledger.ts";
import { createSlices } from "../../src/ledger/slices.ts";
import { createWriter, type Writer } from "../../src/ledger/writer.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { generousStore } from "../support/generous-store.ts";

/** Writes nothing down. */
export const nullJournal: Journal = {
	admit: () => 1,
	progress() {},
	settle() {},
	carry: () => 1,
	keepsFrom: () => 0,
	acknowledge() {},
	durable: async () => {},
	problem: () => undefined,
	size: () => ({ segments: 1, bytes: 0 }),
	close() {},
	destroy() {},
};

/** Writes to `folder`, without waiting for the disk. */
export function realJournal(folder: string, name: string): Journal {
	const disk = openJournalDisk(join(folder, name), { create: true });
	return createJournal({ disk, clock: systemClock, log: silentLog, onSyncFailed() {} }, { syncs: false });
}

/** A ledger with more credit than any run uses, for the account and key of the first fixture. */
export async function ledgerOver(
	journal: Journal,
	{ account, key }: Pick<AdmittedEvent, "account" | "key">,
): Promise<{ ledger: Ledger; writer: Writer }> {
	const clock = systemClock;
	const writer = createWriter(
		{ store: generousStore(), clock, log: silentLog },
		{ flushIntervalMs: 100, flushAt: 256, batchMax: 1_000, queueMax: 10_000_000 },
	);
	const slices = createSlices(
		{ store: generousStore(), clock, log: silentLog, newUuid },
		{ horizonMs: 40_000, idleReturnMs: 60_000, drawDeadlineMs: 5_000, tickMs: 1_000 },
	);
	const ledger = createLedger(
		{ slices, journal, writer, close: async () => {}, clock, log: silentLog },
		{ epoch: 1, mode: "process" },
	);
	await ledger.draw({ account, key }, nanoUsd(1e14));
	return { ledger, writer };
}
