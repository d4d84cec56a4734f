import { edenGC, fullGC, heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import fc from "fast-check";
import { LinkedQueue, type QueueNode } from "../../src/base/linked-queue.ts";

test("the linked queue keeps the insertion order when any element is removed", () => {
	const step = fc.record({ comes: fc.constantFrom("no", "first", "last"), which: fc.nat() });
	fc.assert(
		fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
			const line = new LinkedQueue<number>();
			const there: QueueNode<number>[] = [];
			const left: QueueNode<number>[] = [];
			for (const [nth, { comes, which }] of steps.entries()) {
				if (comes === "first") there.unshift(line.addFirst(nth));
				else if (comes === "last" || there.length === 0) there.push(line.add(nth));
				else {
					const [node] = there.splice(which % there.length, 1) as [QueueNode<number>];
					expect(line.delete(node)).toBe(true);
					left.push(node);
				}
				for (const node of left) expect(line.delete(node)).toBe(false);
				expect([...line]).toEqual(there.map(({ one }) => one));
				expect([line.size, line.first, line.last]).toEqual([there.length, there[0]?.one, there.at(-1)?.one]);
			}
		}),
		{ numRuns: 60, seed: 7 },
	);
});

test("the linked queue visits each element once while others are added or removed", () => {
	const line = new LinkedQueue<number>();
	const standings = Array.from({ length: 6 }, (_, nth) => line.add(nth));
	const met: number[] = [];
	for (const one of line) {
		met.push(one);
		// Removes the current element and both its neighbours during the iteration.
		if (one === 1) for (const at of [0, 1, 2]) line.delete(standings[at] as QueueNode<number>);
		if (one === 4) line.add(6);
	}
	expect(met).toEqual([0, 1, 3, 4, 5, 6]);
});

test("removed elements of the linked queue are freed by a young garbage collection", () => {
	const line = new LinkedQueue<object>();
	const standings: QueueNode<object>[] = [];
	fullGC();
	const before = heapStats().objectTypeCounts.Object ?? 0;
	for (let nth = 0; nth < 60_000; nth++) {
		standings.push(line.add({}));
		if (standings.length > 32) line.delete(standings.shift() as QueueNode<object>);
		if (nth % 10_000 === 0) edenGC();
	}
	edenGC();
	expect((heapStats().objectTypeCounts.Object ?? 0) - before).toBeLessThan(1_500);
});
