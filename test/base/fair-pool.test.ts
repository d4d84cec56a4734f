import { describe, expect, test } from "bun:test";
import { createFairPool, createFairQueue } from "../../src/base/fair-pool.ts";
import { codeThrownBy } from "../support/code-of.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const pool = (size: number, share: number) => createFairPool({ size: () => size, share: () => share });
type Pool = ReturnType<typeof pool>;

/** Takes units for the owner until the pool refuses. Returns how many units the owner holds. */
function fill({ take, of }: Pool, owner: string, amount = 1): number {
	while (codeThrownBy(() => take(owner, amount)) === "none");
	return of(owner);
}

describe("the fair pool", () => {
	for (const [size, share, alone] of [
		[16, 0.25, 4],
		[64, 1 / 8, 8],
		[2, 0.5, 1],
		[16_384, 0.75, 12_288],
		[1_000, 1, 1_000],
		[7, 0.1, 1],
	] as const)
		test(`of ${size} units gives a single owner ${alone} if its share is ${share}`, () => {
			const places = pool(size, share);
			expect(fill(places, "a")).toBe(alone);
			expect(codeThrownBy(() => places.take("a"))).toBe("rate_limit_exceeded");
		});

	for (const attackers of [1, 4, 16, 63])
		test(`leaves units for a new owner although ${attackers} owners take all they can`, () => {
			const places = pool(16_384, 0.75);
			for (let nth = 0; nth < attackers; nth += 1) fill(places, `attacker ${nth}`);
			expect(fill(places, "customer")).toBeGreaterThanOrEqual(16);
		});

	test("shares released units evenly among owners that continue to take", () => {
		const places = pool(1_600, 0.75);
		const owners = ["a", "b", "c", "d"];
		for (const owner of owners) fill(places, owner);
		// In turns, each owner returns a tenth of its units and takes what it can.
		for (let round = 0; round < 100; round += 1)
			for (const owner of owners) {
				places.giveBack(owner, Math.ceil(places.of(owner) / 10));
				fill(places, owner);
			}
		const [least = 0, ...others] = owners.map(places.of).sort((a, b) => a - b);
		expect(others.at(-1) ?? 0).toBeLessThan(1.5 * least);
	});

	test("never refuses units added with `add`, and counts them as taken", () => {
		const places = pool(4, 0.5);
		places.add("lines", 4);
		expect(codeThrownBy(() => places.take("a"))).toBe("overloaded");
		expect(() => places.giveBack("a")).toThrow("gives back");
	});

	test("ends the slowest holder of the owner with most units if other owners need units", () => {
		const places = pool(8, 0.5);
		const ended: string[] = [];
		const enter = (owner: string, pace: number) =>
			places.enter(owner, { pace: () => pace, giveUp: ({ code }) => ended.push(`${owner} ${pace} ${code}`) });
		for (const pace of [3, 1, 2, 4]) enter("a", pace);
		enter("b", 0);
		enter("c", 0);
		enter("d", 0);
		enter("e", 0);
		expect(ended).toEqual([]);
		const leave = enter("f", 0);
		enter("g", 0);
		expect(ended).toEqual(["a 1 overloaded", "a 2 overloaded"]);
		enter("h", 0);
		expect(ended).toHaveLength(3);
		// Every owner holds one slot, so no owner must give up a slot for another.
		expect(codeThrownBy(() => enter("i", 9))).toBe("overloaded");
		leave();
		leave();
		expect(places.all()).toBe(7);
		expect(codeThrownBy(() => enter("i", 9))).toBe("none");
		expect(ended).toHaveLength(3);
	});

	test("ends no holder for an owner that already has its share", () => {
		const places = createFairPool({ size: () => 4, share: () => 0.5, allYield: true });
		const ended: string[] = [];
		for (const owner of ["a", "a", "b", "b"])
			places.enter(owner, { pace: () => 0, giveUp: () => void ended.push(owner) });
		expect(codeThrownBy(() => places.take("a"))).toBe("rate_limit_exceeded");
		expect(ended).toEqual([]);
	});
});

describe("the fair queue", () => {
	const options = { places: 1, waitingMax: 4, waitMsMax: 1_000 };

	test("serves waiting owners in turn", async () => {
		const queue = createFairQueue({ clock: createManualClock() }, options);
		const served: string[] = [];
		const leave = await queue.enter("a");
		const all = ["a 1", "a 2", "b 1", "c 1"].map((name) =>
			queue.run(name.slice(0, 1), async () => void served.push(name)),
		);
		leave();
		leave();
		await Promise.all(all);
		expect(served).toEqual(["a 1", "b 1", "c 1", "a 2"]);
	});

	test("makes an owner with `ownMax` running requests wait until one of these ends", async () => {
		const queue = createFairQueue({ clock: createManualClock() }, { ...options, places: 4, ownMax: 2 });
		const [first] = await Promise.all([queue.enter("a"), queue.enter("a")]);
		const third = queue.enter("a");
		await Promise.all([queue.enter("b"), queue.enter("b")]).then(([leave]) => leave());
		expect(queue.waiting()).toBe(1);
		first();
		await third;
		expect(queue.waiting()).toBe(0);
	});

	test("drops the last waiter of the owner with most waiters if another owner has fewer", async () => {
		const queue = createFairQueue({ clock: createManualClock() }, options);
		const leave = await queue.enter("a");
		const waiting = Array.from({ length: 4 }, () => queue.enter("a"));
		expect(await queue.enter("a").catch(({ code }) => code)).toBe("overloaded");
		const other = queue.enter("b");
		expect(await waiting[3]?.catch(({ code }) => code)).toBe("overloaded");
		leave();
		(await Promise.race([other, ...waiting.slice(0, 3)]))();
		expect(queue.waiting()).toBeLessThan(4);
	});

	test("refuses a new waiter if the queue is full and no owner has two waiters", async () => {
		const queue = createFairQueue({ clock: createManualClock() }, options);
		const leave = await queue.enter("a");
		const waiting = ["b", "c", "d", "e"].map((owner) => queue.enter(owner));
		for (const owner of ["f", "b"]) expect(await queue.enter(owner).catch(({ code }) => code)).toBe("overloaded");
		leave();
		for (const one of waiting) (await one)();
		expect(queue.waiting()).toBe(0);
	});

	test("refuses a waiter that has waited for the longest allowed time", async () => {
		const clock = createManualClock();
		const queue = createFairQueue({ clock }, options);
		const leave = await queue.enter("a");
		const waiting = queue.enter("b");
		clock.advance(1_000);
		expect(await waiting.catch(({ code }) => code)).toBe("overloaded");
		leave();
		expect(await queue.run("c", async () => 1)).toBe(1);
	});
});
