import { expect, test } from "bun:test";
import { createGate } from "../../src/cluster/gate.ts";

function build() {
	const now = { monotonic: 5_000, wall: 1_000_000 };
	const gate = createGate({
		clock: { monotonicMs: () => now.monotonic, wallMs: () => now.wall, after: () => () => {} },
	});
	return { gate, now };
}

test("the admission gate is closed, and says why, until a lease extends it", () => {
	const { gate } = build();
	expect(gate.isOpen()).toBe(false);
	expect(gate.reason()).toBe("starting");
	gate.extend(gate.mark(), 100);
	expect(gate.isOpen()).toBe(true);
	expect(gate.reason()).toBe(undefined);
});

test("the admission gate closes with its lease even if the wall clock was set back", () => {
	const { gate, now } = build();
	gate.extend(gate.mark(), 100);
	now.wall -= 3_600_000;
	now.monotonic += 99;
	expect(gate.isOpen()).toBe(true);
	now.monotonic += 1;
	expect(gate.isOpen()).toBe(false);
	expect(gate.reason()).toContain("lease is over");
});

test("the admission gate closes with its lease even if the monotonic clock stood still", () => {
	const { gate, now } = build();
	gate.extend(gate.mark(), 100);
	now.wall += 100;
	expect(gate.isOpen()).toBe(false);
});

test("the admission gate counts a lease from the time before the heartbeat was sent", () => {
	const { gate, now } = build();
	const mark = gate.mark();
	now.monotonic += 100;
	now.wall += 100;
	gate.extend(mark, 100);
	expect(gate.isOpen()).toBe(false);
});

test("the admission gate stays closed once the instance is stopping", () => {
	const { gate } = build();
	gate.extend(gate.mark(), 100);
	gate.close("fenced");
	expect(gate.reason()).toBe("fenced");
	gate.extend(gate.mark(), 100);
	expect(gate.isOpen()).toBe(true);
	gate.close("stopping", true);
	gate.extend(gate.mark(), 100);
	expect(gate.isOpen()).toBe(false);
	expect(gate.reason()).toBe("stopping");
});

test("the admission gate counts its openings", () => {
	const { gate, now } = build();
	const counts = [gate.openings()];
	const extend = () => {
		gate.extend(gate.mark(), 100);
		counts.push(gate.openings());
	};
	extend();
	now.monotonic += 99;
	extend();
	now.monotonic += 100;
	extend();
	gate.close("fenced");
	extend();
	expect(counts).toEqual([0, 1, 1, 2, 3]);
});

test("the admission gate reports the time left by whichever clock is ahead", () => {
	const { gate, now } = build();
	expect(gate.leftMs()).toBe(0);
	gate.extend(gate.mark(), 100);
	now.wall -= 3_600_000;
	now.monotonic += 30;
	expect(gate.leftMs()).toBe(70);
	now.wall += 3_600_000 + 60;
	expect(gate.leftMs()).toBe(40);
	now.wall += 50;
	expect(gate.leftMs()).toBe(0);
	gate.extend(gate.mark(), 100);
	gate.close("stopping");
	expect(gate.leftMs()).toBe(0);
});
