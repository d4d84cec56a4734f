import { edenGC, fullGC, heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import fc from "fast-check";
import { SlotMap } from "../../src/base/slot-map.ts";

test("the slot map finds the last value of a name until the name is deleted", () => {
	const step = fc.record({ sets: fc.boolean(), name: fc.integer({ min: 0, max: 20 }) });
	fc.assert(
		fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
			const slots = new SlotMap<{ nth: number }>();
			const there = new Map<string, { nth: number }>();
			for (const [nth, { sets, name }] of steps.entries()) {
				if (sets) {
					slots.set(`${name}`, { nth });
					there.set(`${name}`, { nth });
				} else {
					expect(slots.delete(`${name}`)).toEqual(there.get(`${name}`));
					there.delete(`${name}`);
				}
				for (let other = 0; other <= 20; other++) expect(slots.get(`${other}`)).toEqual(there.get(`${other}`));
				expect(new Set(slots)).toEqual(new Set(there.values()));
				expect(slots.size).toBe(there.size);
			}
		}),
		{ numRuns: 60, seed: 6 },
	);
});

test("deleted values of the slot map are freed by a young garbage collection", () => {
	const slots = new SlotMap<object>();
	fullGC();
	const before = heapStats().objectTypeCounts.Object ?? 0;
	for (let nth = 0; nth < 60_000; nth++) {
		slots.set(`name ${nth}`, {});
		slots.delete(`name ${nth - 32}`);
		if (nth % 10_000 === 0) edenGC();
	}
	edenGC();
	expect((heapStats().objectTypeCounts.Object ?? 0) - before).toBeLessThan(1_000);
});
