import { expect, test } from "bun:test";
import { createLongRunWatch } from "../../src/base/moments.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const MOMENT_MS = 100;

test("event-loop work longer than the limit is reported once, shorter work never", () => {
	const clock = createManualClock();
	const told: string[] = [];
	const moments = createLongRunWatch<string>(clock, (one) => void told.push(one));
	const long = moments.begin("long");
	const short = moments.begin("short");
	expect(clock.pending()).toBe(1);
	expect(moments.end(short)).toBe(false);
	clock.advance(MOMENT_MS);
	expect(told).toEqual(["long"]);
	clock.advance(10 * MOMENT_MS);
	expect(told).toEqual(["long"]);
	expect(moments.end(long)).toBe(true);
	expect(clock.pending()).toBe(0);
	moments.begin("long");
	clock.advance(MOMENT_MS);
	expect(told).toEqual(["long", "long"]);
});

test("event-loop work that ends while a report is written is not reported", () => {
	const clock = createManualClock();
	const told: string[] = [];
	const moments = createLongRunWatch<string>(clock, (one) => {
		told.push(one);
		expect(moments.end(second)).toBe(false);
	});
	moments.begin("first");
	const second = moments.begin("second");
	clock.advance(MOMENT_MS);
	expect(told).toEqual(["first"]);
});

test("event-loop work that begins during a report is not part of that report", () => {
	const clock = createManualClock();
	const told: string[] = [];
	let next = 0;
	const moments = createLongRunWatch<string>(clock, (one) => {
		told.push(one);
		if (one === "first") next = moments.begin("next");
	});
	const first = moments.begin("first");
	const second = moments.begin("second");
	clock.advance(MOMENT_MS);
	expect(told).toEqual(["first", "second"]);
	expect(moments.end(first)).toBe(true);
	expect(moments.end(second)).toBe(true);
	expect(moments.end(next)).toBe(false);
	clock.advance(MOMENT_MS);
	expect(told).toEqual(["first", "second"]);
});
