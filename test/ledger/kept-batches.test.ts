import { expect, test } from "bun:test";
import { SettledColumns } from "../../src/ledger/settled-columns.ts";
import { createKeptBatches } from "../../src/ledger/writer.ts";
import { settledEvent, usd } from "./fixture.ts";

const batch = (id: string, settlements = 1) =>
	SettledColumns.of(Array.from({ length: settlements }, () => settledEvent("a", "k", 1, { id })));

const idsOf = (batches: readonly SettledColumns[]) => batches.map((one) => one.at(0).id);

test("returns batches as they were added, oldest first", () => {
	const kept = createKeptBatches();
	const first = settledEvent("a", "k", 1, { model: "größe \\ \ud83d\ude00", first: null, replica: null });
	const second = settledEvent("b", "l", 2, { budgets: ["p", 'q"'], batch: "batch_1", streamed: false });
	const third = settledEvent("a", "l", Number.MAX_SAFE_INTEGER, { off: usd(7), first: 0.125, ms: 1e-7 });
	kept.add(SettledColumns.of([first]), 0);
	kept.add(SettledColumns.of([second, third]), 100);
	kept.add(new SettledColumns(), 200);
	expect(kept.batches().map((one) => [...one])).toEqual([[first], [second, third]]);
});

test("forgets batches older than half a minute", () => {
	const kept = createKeptBatches();
	for (const second of [0, 10, 20, 30]) kept.add(batch(`${second}`), second * 1_000);
	expect(idsOf(kept.batches())).toEqual(["0", "10", "20", "30"]);
	kept.add(batch("31"), 30_001);
	expect(idsOf(kept.batches())).toEqual(["10", "20", "30", "31"]);
});

test("keeps at most twenty thousand settlements", () => {
	const kept = createKeptBatches();
	for (let number = 0; number < 40; number++) kept.add(batch(`${number}`, 1_000), 0);
	expect(idsOf(kept.batches())).toEqual(Array.from({ length: 20 }, (_, index) => `${index + 20}`));
	kept.add(batch("40"), 0);
	expect(kept.batches().length).toBe(20);
});
