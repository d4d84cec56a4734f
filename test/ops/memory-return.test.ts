import { expect, test } from "bun:test";
import { createThresholdCollector, startMemoryReturn } from "../../src/ops/memory-return.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const MB = 1024 * 1024;

function setUp() {
	const state = { open: 0, residentMb: 100, isReadable: true, collections: 0 };
	const clock = createManualClock();
	const memoryReturn = startMemoryReturn({
		clock,
		open: () => state.open,
		resident: () => (state.isReadable ? state.residentMb * MB : undefined),
		collect() {
			state.collections += 1;
			state.residentMb = 140;
		},
	});
	clock.advance(3_000);
	return { state, clock, memoryReturn };
}

test("garbage of a burst of requests is collected once, when no request is open", () => {
	const { state, clock } = setUp();
	state.open = 5_000;
	state.residentMb = 260;
	clock.advance(60_000);
	expect(state.collections).toBe(0);
	state.open = 0;
	clock.advance(1_000);
	expect(state.collections).toBe(0);
	clock.advance(1_000);
	expect(state.collections).toBe(1);
	clock.advance(600_000);
	expect(state.collections).toBe(1);
	state.residentMb = 200;
	clock.advance(1_000);
	expect(state.collections).toBe(2);
});

test("no garbage is collected while a request is open at each check", () => {
	const { state, clock } = setUp();
	state.residentMb = 1_000;
	for (let second = 0; second < 100; second += 1) {
		state.open = 1 - (second % 2);
		clock.advance(1_000);
	}
	expect(state.collections).toBe(0);
});

test("garbage is collected once the memory's size is readable again", () => {
	const { state, clock } = setUp();
	state.residentMb = 260;
	state.isReadable = false;
	clock.advance(60_000);
	expect(state.collections).toBe(0);
	state.isReadable = true;
	clock.advance(1_000);
	expect(state.collections).toBe(1);
});

test("no garbage is collected in a process whose memory did not grow", () => {
	const { state, clock } = setUp();
	state.residentMb = 131;
	clock.advance(600_000);
	expect(state.collections).toBe(0);
	state.residentMb = 132;
	clock.advance(1_000);
	expect(state.collections).toBe(1);
});

test("`stop` leaves no timer of the garbage collection", () => {
	const { clock, memoryReturn } = setUp();
	memoryReturn.stop();
	expect(clock.pending()).toBe(0);
});

test("garbage is collected at once above a third of the memory, or at unknown size", () => {
	const state = { resident: undefined as number | undefined, collections: 0 };
	const collect = () => {
		state.collections += 1;
	};
	const near = createThresholdCollector({ resident: () => state.resident, collect }, 900 * MB);
	for (const [resident, collections] of [
		[250 * MB, 0],
		[300 * MB, 0],
		[301 * MB, 1],
		[undefined, 2],
	] as const) {
		state.resident = resident;
		near();
		expect([resident, state.collections]).toEqual([resident, collections]);
	}
});
