import { edenGC, fullGC, heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import fc from "fast-check";
import { SlotPool } from "../../src/base/slot-pool.ts";

test("the slot pool finds exactly the objects in it, by slot and by iteration", () => {
	const step = fc.record({ takes: fc.boolean(), which: fc.nat() });
	fc.assert(
		fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
			const slots = new SlotPool<{ nth: number }>();
			const open = new Map<{ nth: number }, number>();
			const gone: [{ nth: number }, number][] = [];
			let most = 0;
			for (const [nth, { takes, which }] of steps.entries()) {
				if (takes || open.size === 0) {
					const one = { nth };
					open.set(one, slots.take(one));
				} else {
					const [one, slot] = [...open][which % open.size] as [{ nth: number }, number];
					expect(slots.release(slot, one)).toBe(true);
					open.delete(one);
					gone.push([one, slot]);
				}
				most = Math.max(most, open.size);
				for (const [one, slot] of gone) expect(slots.release(slot, one)).toBe(false);
				for (const [one, slot] of open) expect(slots.at(slot)).toBe(one);
				expect(new Set(slots)).toEqual(new Set(open.keys()));
				expect(slots.size).toBe(open.size);
				expect(slots.reach).toBe(most);
			}
		}),
		{ numRuns: 60, seed: 5 },
	);
});

test("the slot pool skips released objects in an iteration and frees their slots", () => {
	const slots = new SlotPool<{ slot: number }>();
	const crowd = Array.from({ length: 5_000 }, () => ({ slot: 0 }));
	for (const one of crowd) one.slot = slots.take(one);
	let met = 0;
	for (const _ of slots) {
		met += 1;
		for (const one of crowd) slots.release(one.slot, one);
	}
	expect([met, slots.size, slots.reach]).toEqual([1, 0, 0]);
});

/** Counts the objects that survive a young collection, of 60,000 objects of which at most 32 are in use at once. */
function keptOf(enter: (one: { slot: number }) => void, leave: (one: { slot: number }) => void): number {
	const open: { slot: number }[] = [];
	fullGC();
	const before = heapStats().objectTypeCounts.Object ?? 0;
	for (let nth = 0; nth < 60_000; nth++) {
		const one = { slot: 0 };
		enter(one);
		open.push(one);
		if (open.length > 32) leave(open.shift() as { slot: number });
		if (nth % 10_000 === 0) edenGC();
	}
	edenGC();
	return (heapStats().objectTypeCounts.Object ?? 0) - before;
}

test("objects released from the slot pool are freed by a young garbage collection", () => {
	const slots = new SlotPool<{ slot: number }>();
	const enter = (one: { slot: number }) => {
		one.slot = slots.take(one);
	};
	// Each collection moves the objects in use, some dozens, to the older generation.
	expect(keptOf(enter, (one) => slots.release(one.slot, one))).toBeLessThan(1_000);
	const set = new Set<object>();
	expect(
		keptOf(
			(one) => set.add(one),
			(one) => set.delete(one),
		),
	).toBeGreaterThan(20_000);
});
