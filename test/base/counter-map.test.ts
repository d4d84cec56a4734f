import { expect, test } from "bun:test";
import { CounterMap } from "../../src/base/counter-map.ts";

test("the counter map counts by name, and drops a name whose count returns to zero", () => {
	const tally = new CounterMap();
	expect(tally.of("nobody")).toBe(0);
	for (let nth = 0; nth < 50_000; nth++) {
		expect(tally.add(`${nth}`, 2)).toBe(2);
		if (nth % 10 !== 0) expect(tally.add(`${nth}`, -2)).toBe(0);
		expect(tally.size).toBeLessThanOrEqual(2 * (nth / 10) + 1_003);
	}
	for (const nth of [0, 10, 49_990]) expect(tally.of(`${nth}`)).toBe(2);
	for (const nth of [1, 49_999]) expect(tally.of(`${nth}`)).toBe(0);
	for (let round = 0; round < 3_000; round++) {
		tally.add("again", 1);
		tally.add("again", -1);
	}
	expect(tally.of("again")).toBe(0);
	expect(tally.add("again", 5)).toBe(5);
});
