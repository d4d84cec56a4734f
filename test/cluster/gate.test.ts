import { expect, test } from "bun:test";
import { createGate } from "../../src/cluster/gate.ts";

function build() {
	const now = { monotonic: 5_000, wall: 1_000_000 };
	const gate = createGate({
		clock: { monotonicMs: () => now.monotonic, wallMs: () => now.wall, after: () => () => {} },
	});
	return { gate, now };
}

test("a gate is closed until it was extended, and says why", () => {
	const { gate } = build();
	expect(gate.isOpen()).toBe(false);
	expect(gate.reason()).toBe("starting");
	gate.extend(gate.mark(), 100);
	expect(gate.isOpen()).toBe(true);
	expect(gate.reason()).toBe(undefined);
});

test("it closes by the monotonic clock though the wall clock was set back", () => {
	const { gate, now } = build();
	gate.extend(gate.mark(), 100);
	now.wall -= 3_600_000;
	now.monotonic += 99;
	expect(gate.isOpen()).toBe(true);
	now.monotonic += 1;
	expect(gate.isOpen()).toBe(false);
	expect(gate.reason()).toContain("lease is over");
});

test("it closes by the wall clock though the monotonic one stood still, as in a suspended machine", () => {
	const { gate, now } = build();
	gate.extend(gate.mark(), 100);
	now.wall += 100;
	expect(gate.isOpen()).toBe(false);
});

test("the promise counts from the mark, not from the reply", () => {
	const { gate, now } = build();
	const mark = gate.mark();
	now.monotonic += 100;
	now.wall += 100;
	gate.extend(mark, 100);
	expect(gate.isOpen()).toBe(false);
});

test("a final close stays closed, another one only until the next extension", () => {
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

test("it counts how often it opened, by a lease that was over or a close, and not what keeps it open", () => {
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

test("what is left of it goes by the clock that says less, and is nothing once it is closed", () => {
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
