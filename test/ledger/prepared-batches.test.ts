/** The next batch's text is prepared while Postgres works: the sent text has the batch's content at sending. */
import { expect, spyOn, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { DatabaseTimeout } from "../../src/db/outage.ts";
import type { SettledEvent } from "../../src/ledger/event.ts";
import { SettledColumns, type SettledLiterals } from "../../src/ledger/settled-columns.ts";
import type { LedgerStore } from "../../src/ledger/store.ts";
import { createWriter } from "../../src/ledger/writer.ts";
import { atEnd } from "../support/at-end.ts";
import { generousStore } from "../support/generous-store.ts";
import { createRandom } from "../support/random.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { settledEvent } from "./fixture.ts";

const SETTLEMENTS = 600;
const BATCH_MAX = 6;

const prepared = spyOn(SettledColumns.prototype, "prepare");
atEnd(() => prepared.mockRestore());

test.each([1, 2, 3])("sends the current content of batches that change after preparation (seed %i)", async (seed) => {
	const { int, pick, chance, uuid } = createRandom(seed);
	prepared.mockClear();
	const clock = createManualClock();
	const events: SettledEvent[] = [];
	const acknowledged: number[] = [];
	/** Each with the same settlements' literals without preparation. */
	const sent: [SettledLiterals, SettledLiterals][] = [];
	const recorded = new Map<string, SettledEvent>();
	const store: LedgerStore = {
		...generousStore(),
		async flush(settled) {
			const batch = SettledColumns.of(settled);
			const literals = batch.literals();
			const holds = [...batch];
			sent.push([literals, SettledColumns.of(holds).literals()]);
			// The writer prepares the next batch, and more requests settle.
			await new Promise(setImmediate);
			clock.advance(0);
			settleMore(int(0, 2 * BATCH_MAX));
			if (chance(0.1)) throw new Error("refused");
			if (chance(0.1)) throw new DatabaseTimeout("given up");
			const busy = new Set(holds.filter(() => chance(0.05)).map(({ id }) => id));
			for (const event of holds) if (!busy.has(event.id)) recorded.set(event.id, event);
			return { late: false, fresh: holds.length, busy };
		},
	};
	const options = { flushIntervalMs: 100, flushAt: BATCH_MAX, batchMax: BATCH_MAX, queueMax: SETTLEMENTS };
	const writer = createWriter({ store, clock, log: silentLog }, options);
	function settleMore(count: number): void {
		for (let more = 0; more < count && events.length < SETTLEMENTS; more++) {
			const event = settledEvent("a", pick(["k", 'k"1"']), int(0, 1), { id: uuid(), model: pick(["m", "n"]) });
			writer.settle(event, (ticket) => void acknowledged.push(ticket), events.push(event) - 1, clock.monotonicMs());
		}
	}
	settleMore(3 * BATCH_MAX);
	while (acknowledged.length < events.length) {
		clock.advance(1_000);
		await new Promise(setImmediate);
	}
	expect(events).toHaveLength(SETTLEMENTS);
	for (const [literals, anew] of sent) expect(literals).toEqual(anew);
	expect(acknowledged.toSorted((a, b) => a - b)).toEqual(events.map((_, ticket) => ticket));
	expect(events.map(({ id }) => recorded.get(id))).toEqual(events);
	expect(prepared.mock.calls.length).toBeGreaterThan(0);
});
