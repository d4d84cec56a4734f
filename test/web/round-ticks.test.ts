import { expect, test } from "bun:test";
import { roundTicks } from "../../src/web/parts/round-ticks.ts";

test.each([
	[[0.11e9], [0, 0.05e9, 0.1e9, 0.15e9]],
	[
		[7, 3],
		[0, 2, 4, 6, 8],
	],
	[
		[-3, 9],
		[-5, 0, 5, 10],
	],
	[[0], [0]],
	[[], [0]],
	[[0.3], [0, 0.1, 0.2, 0.3]],
])("the ticks for the values %p are round and cover all values", (values, ticks) => {
	expect(roundTicks(values)).toEqual(ticks);
});

test("the ticks of a chart are at most seven, evenly spaced, and cover all values", () => {
	for (let at = 0; at < 2_000; at++) {
		const values = [Math.random() * 10 ** (at % 15), -Math.random() * 10 ** (at % 7)];
		const ticks = roundTicks(values);
		expect(ticks.length).toBeLessThanOrEqual(7);
		expect(Math.min(...values)).toBeGreaterThanOrEqual(ticks[0] as number);
		expect(Math.max(...values)).toBeLessThanOrEqual(ticks.at(-1) as number);
		expect(ticks).toContain(0);
	}
});
