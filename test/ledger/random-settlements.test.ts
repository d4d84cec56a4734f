import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { nextTurn as turn } from "../../src/base/time-slice.ts";
import { DatabaseBusy, DatabaseTimeout } from "../../src/db/outage.ts";
import { SettledColumns, type SettledEvent } from "../../src/ledger/event.ts";
import { LeaseExceeded, type LedgerStore } from "../../src/ledger/store.ts";
import { createWriter } from "../../src/ledger/writer.ts";
import { generousStore } from "../support/generous-store.ts";
import { createRandom } from "../support/random.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { settledEvent, usd } from "./fixture.ts";

const SEEDS = 12;
const SETTLEMENTS = 400;
/** Maximum number of settlements that are added while others are being acknowledged. */
const MORE_MAX = 100;
const DRAIN_ROUNDS_MAX = 400;

const textOf = (event: SettledEvent) => JSON.stringify(event, Object.keys(event).sort());

/** A store that fails before or after its work, answers late, reports locked rows, and refuses one settlement. */
function unreliable(seed: number) {
	const random = createRandom(seed);
	const clock = createManualClock();
	const sent = new Map<string, string>();
	const applied = new Set<string>();
	const state = { calm: false, busy: new Set<string>(), poison: seed % 3 === 0 ? "t3" : undefined };
	const mixed: string[] = [];

	function apply(event: SettledEvent): void {
		if (textOf(JSON.parse(textOf(event))) !== sent.get(event.id)) mixed.push(event.id);
		applied.add(event.id);
	}

	const store: LedgerStore = {
		...generousStore(),
		async flush(settlements) {
			const lent = SettledColumns.of(settlements);
			const before = [...lent].map(textOf).join();
			if (random.chance(0.7)) await new Promise<void>((done) => void clock.after(random.int(1, 400), done));
			const all = [...lent];
			if (all.map(textOf).join() !== before) mixed.push("changed while it was on its way");
			const busy = new Set(state.busy);
			const free = all.filter(({ account }) => !busy.has(account));
			// A single settlement mostly succeeds when it is retried, so that the test ends.
			const luck = state.calm || (all.length === 1 && random.chance(0.9)) ? 1 : random.fraction();
			if (luck < 0.1) throw new DatabaseTimeout("before anything was done");
			if (luck < 0.2) {
				for (const event of free) apply(event);
				throw new Error("the connection was lost behind the commit");
			}
			if (luck < 0.25 && all.length > 1) throw new LeaseExceeded("one of them");
			if (!state.calm && all.some(({ id }) => id === state.poison)) throw new Error("refused");
			if (luck > 0.95 && luck < 1) return { late: true, fresh: 0, busy: new Set() };
			for (const event of free) apply(event);
			return { late: false, fresh: free.length, busy };
		},
		async settleLate(json) {
			const event = JSON.parse(json) as SettledEvent;
			if (state.busy.has(event.account)) throw new DatabaseBusy("a row that the statement needs is held");
			if (!state.calm && random.chance(0.01)) throw new Error("in the middle of what is late");
			apply(event);
		},
	};
	return { random, clock, sent, applied, state, mixed, store };
}

test("the writer sends each settlement unchanged, then acknowledges it once", async () => {
	for (let seed = 1; seed <= SEEDS; seed++) {
		const { random, clock, sent, applied, state, mixed, store } = unreliable(seed);
		const options = { flushIntervalMs: 100, flushAt: 64, batchMax: 90, queueMax: 1e6 };
		const writer = createWriter({ store, clock, log: silentLog }, options);
		const acknowledged: number[] = [];
		const early: number[] = [];
		let added = 0;
		let more = 0;

		function acknowledge(ticket: number): void {
			acknowledged.push(ticket);
			if (!applied.has(`t${ticket}`)) early.push(ticket);
			if (!state.calm && more < MORE_MAX && random.chance(0.1)) {
				more += 1;
				add();
			}
		}
		function add(): void {
			const nth = added++;
			const event = settledEvent(`account "${nth % 17}\\`, `key ${nth % 31}`, nth + 1, {
				id: `t${nth}`,
				completionTokens: nth,
				replica: `m#${nth % 3}`,
				first: nth % 2 ? nth : null,
				reserved: usd(nth + 1),
				...(nth % 4 === 0 && { budgets: [`b${nth}`, `c"${nth}`] }),
			});
			sent.set(event.id, textOf(event));
			writer.settle(event, acknowledge, nth, clock.monotonicMs());
		}

		for (let nth = 0; nth < SETTLEMENTS; nth++) {
			add();
			if (random.chance(0.02))
				state.busy = new Set(random.chance(0.5) ? [`account "${nth % 17}\\`, `account "${(nth + 5) % 17}\\`] : []);
			if (!random.chance(0.1)) continue;
			clock.advance(random.int(0, 300));
			await turn();
		}
		state.calm = true;
		state.busy = new Set();
		for (let round = 0; round < DRAIN_ROUNDS_MAX && writer.queued() > 0; round++) {
			clock.advance(1_000);
			await turn();
		}
		writer.stop();
		expect({ seed, queued: writer.queued(), mixed, early }).toEqual({ seed, queued: 0, mixed: [], early: [] });
		expect([applied.size, acknowledged.length, new Set(acknowledged).size]).toEqual([added, added, added]);
	}
});
