import { expect, test } from "bun:test";
import { createKeptBatches } from "../../src/ledger/kept-batches.ts";

test("what was added comes out as it was, oldest first, whatever letters it has", () => {
	const kept = createKeptBatches();
	kept.add('[{"id":"a","model":"größe \\ud83d\\ude00"}]', 1, 0);
	kept.add('[{"id":"b"},{"id":"c"}]', 2, 100);
	kept.add("[]", 0, 200);
	expect([...kept.texts()]).toEqual(['[{"id":"a","model":"größe \\ud83d\\ude00"}]', '[{"id":"b"},{"id":"c"}]']);
});

test("what is older than half a minute is forgotten, and nothing before it", () => {
	const kept = createKeptBatches();
	for (const second of [0, 10, 20, 30]) kept.add(`[${second}]`, 1, second * 1_000);
	expect([...kept.texts()]).toEqual(["[0]", "[10]", "[20]", "[30]"]);
	kept.add("[31]", 1, 30_001);
	expect([...kept.texts()]).toEqual(["[10]", "[20]", "[30]", "[31]"]);
});

test("twenty thousand settlements are kept and no more, however they were batched", () => {
	const kept = createKeptBatches();
	for (let batch = 0; batch < 40; batch++) kept.add(`[${batch}]`, 1_000, 0);
	expect([...kept.texts()]).toEqual(Array.from({ length: 20 }, (_, index) => `[${index + 20}]`));
	kept.add("[40]", 1, 0);
	expect([...kept.texts()].length).toBe(20);
});

test("what is added while it is read does not come out", () => {
	const kept = createKeptBatches();
	kept.add("[1]", 1, 0);
	const texts = kept.texts();
	expect(texts.next().value).toBe("[1]");
	kept.add("[2]", 1, 0);
	expect(texts.next().done).toBe(true);
});
