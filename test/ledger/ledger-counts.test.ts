import { expect, test } from "bun:test";
import { countedStore, createLedgerCounts } from "../../src/ledger/ledger-counts.ts";
import { ZERO_USD } from "../../src/money/nano-usd.ts";
import { generousStore, grantReply } from "../support/generous-store.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { giving, usd, wish } from "./fixture.ts";

test("the metrics count each grant, return and flush once, when it is executed", async () => {
	const clock = createManualClock();
	const counts = createLedgerCounts();
	let isAway = false;
	const store = countedStore(
		{ clock, counts },
		{
			...generousStore(),
			grant: async () => [
				grantReply("a", usd(50)),
				grantReply("b", ZERO_USD),
				grantReply("c", ZERO_USD, { busy: true }),
			],
			giveBack: async () => new Set(["held"]),
			async flush() {
				clock.advance(40);
				if (isAway) throw new Error("away");
				return { late: false, fresh: 3, busy: new Set<string>() };
			},
		},
	);
	await store.grant(["a", "b", "c"].map((op) => wish("acc_1", 50, 1, { op })));
	expect(counts).toMatchObject({ granted: 1, refused: 1, grantedNanoUsd: 50 });
	await store.giveBack([
		giving("acc_1", 9, { op: "held", recall: 4 }),
		giving("acc_1", 20, { op: "d", recall: 4 }),
		giving("acc_1", 5, { op: "e" }),
	]);
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
