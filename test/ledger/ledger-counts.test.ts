import { expect, test } from "bun:test";
import { countedStore, createLedgerCounts } from "../../src/ledger/ledger-counts.ts";
import type { GrantReply } from "../../src/ledger/store.ts";
import { nanoUsd, ZERO_USD } from "../../src/money/nano-usd.ts";
import { generousStore } from "../support/generous-store.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const wish = (op: string, want: number) => ({
	op,
	budget: "acc_1",
	want: nanoUsd(want),
	min: nanoUsd(1),
	again: false,
	ticket: null,
});
const giving = (op: string, amount: number, recall: number | null) => ({
	op,
	budget: "acc_1",
	amount: nanoUsd(amount),
	recall,
});

test("the metrics count each grant, return and flush once, when it is executed", async () => {
	const clock = createManualClock();
	const counts = createLedgerCounts();
	let isAway = false;
	const reply = (op: string, amount: number, busy: boolean): GrantReply => ({
		op,
		amount: nanoUsd(amount),
		available: ZERO_USD,
		unanswered: 0,
		lent: null,
		contested: false,
		busy,
		untimely: false,
	});
	const store = countedStore(
		{ clock, counts },
		{
			...generousStore(),
			grant: async () => [reply("a", 50, false), reply("b", 0, false), reply("c", 0, true)],
			giveBack: async () => new Set(["held"]),
			async flush() {
				clock.advance(40);
				if (isAway) throw new Error("away");
				return { late: false, fresh: 3, busy: new Set<string>() };
			},
		},
	);
	await store.grant([wish("a", 50), wish("b", 50), wish("c", 50)]);
	expect(counts).toMatchObject({ granted: 1, refused: 1, grantedNanoUsd: 50 });
	await store.giveBack([giving("held", 9, 4), giving("d", 20, 4), giving("e", 5, null)]);
	expect(counts).toMatchObject({ returnedNanoUsd: 25, recallsAnswered: 1 });
	await store.recall(["acc_1", "acc_2"]);
	expect(counts.recallsAsked).toBe(2);
	await store.flush([], "[]");
	isAway = true;
	await expect(store.flush([], "[]")).rejects.toThrow("away");
	expect(counts.failedFlushes).toBe(1);
	expect(counts.flushMs.sum).toBe(80);
	expect(counts.flushSize.sum).toBe(3);
});
