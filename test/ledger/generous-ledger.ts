import { systemClock } from "../../src/base/clock.ts";
import { newUuid } from "../../src/base/id.ts";
import { silentLog } from "../../src/base/log.ts";
import type { AdmittedEvent } from "../../src/ledger/event.ts";
import type { Journal } from "../../src/ledger/journal.ts";
import { createLedger, type Ledger } from "../../src/ledger/ledger.ts";
import { createSlices } from "../../src/ledger/slices.ts";
import { createWriter, type Writer } from "../../src/ledger/writer.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { generousStore } from "../support/generous-store.ts";

/** A ledger with more credit than a test uses, and a writer without a database. */
export async function ledgerOver(
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
