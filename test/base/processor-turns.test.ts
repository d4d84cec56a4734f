import { expect, spyOn, test } from "bun:test";
import { createProcessorTurns } from "../../src/base/processor-turns.ts";
import { nextTurn } from "../../src/base/time-slice.ts";

/** Keeps the processor busy for `ms` milliseconds. */
function work(ms: number): void {
	const endsMs = performance.now() + ms;
	while (performance.now() < endsMs);
}

/** Creates a queue and uses up the time slice of the current turn of the event loop. */
function setUp() {
	const turns = createProcessorTurns();
	turns.run("first", () => work(3));
	return turns;
}

test("the turn queue runs work at once if its time slice is not used up", () => {
	const turns = createProcessorTurns();
	expect([turns.run("a", () => 1), turns.run("b", () => 2), turns.begin("c", 1)]).toEqual([1, 2, undefined]);
});

test("the turn queue rejects with the error of immediate work and of delayed work", async () => {
	const fail = () => {
		throw new Error("of the work");
	};
	expect(() => createProcessorTurns().run("a", fail)).toThrow("of the work");
	await expect(setUp().run("a", fail)).rejects.toThrow("of the work");
});

test("the turn queue lets other events run between steps", async () => {
	const turns = setUp();
	const done: string[] = [];
	const all = [1, 2, 3].map((nth) =>
		turns.run("a", () => {
			work(3);
			done.push(`step ${nth}`);
		}),
	);
	for (let nth = 0; nth < 3; nth += 1) {
		await nextTurn();
		done.push("other");
	}
	await Promise.all(all);
	expect(done).toEqual(["step 1", "other", "step 2", "other", "step 3", "other"]);
});

test("the turn queue next serves the owner that used the least processor time", async () => {
	const turns = setUp();
	const done: string[] = [];
	const all: unknown[] = [];
	for (let nth = 0; nth < 20; nth += 1)
		all.push(
			turns.run("heavy", () => {
				work(3);
				done.push("heavy");
			}),
		);
	await nextTurn();
	for (let nth = 0; nth < 5; nth += 1) all.push(turns.run("light", () => done.push("light")));
	await Promise.all(all);
	expect(done.lastIndexOf("light")).toBeLessThanOrEqual(6);
});

test("the turn queue finishes a task before it begins the owner's next task", async () => {
	const turns = setUp();
	const done: string[] = [];
	const task = async (name: string) => {
		await turns.begin("a", 2);
		for (let step = 1; step <= 3; step += 1) {
			done.push(`${name}${step}`);
			if (step < 3) await turns.next("a", 2, true);
		}
	};
	await Promise.all(["x", "y", "z"].map(task));
	expect(done.join(" ")).toBe("x1 x2 x3 y1 y2 y3 z1 z2 z3");
});

test.each([
	["refused", (turns: ReturnType<typeof createProcessorTurns>) => turns.refused("a", 4)],
	["cancelled", (turns: ReturnType<typeof createProcessorTurns>) => turns.charge("a", 4)],
] as const)("the turn queue delays an owner whose work was %s, and no other owner", async (_, charge) => {
	const turns = createProcessorTurns();
	for (let nth = 0; nth < 7; nth += 1) charge(turns);
	const done: string[] = [];
	const begunMs = performance.now();
	const all = [turns.run("a", () => done.push("a")), turns.run("b", () => done.push("b"))];
	await all[1];
	expect(done).toEqual(["b"]);
	await all[0];
	expect(performance.now() - begunMs).toBeLessThan(5_000);
});

test("an owner's refusals above the limit wait in the turn queue for later windows", async () => {
	const turns = createProcessorTurns();
	const begunMs = performance.now();
	const waiting = Array.from({ length: 20 }, () => turns.refused("a", 4)).filter((answer) => answer !== undefined);
	expect(waiting.length).toBe(14);
	await Promise.all(waiting);
	expect(performance.now() - begunMs).toBeGreaterThan(450);
});

test("the turn queue answers refusals of many owners in turn", async () => {
	const turns = createProcessorTurns();
	const order: string[] = [];
	const refuse = (owner: string) => turns.refused(owner, 1 / 8)?.then(() => order.push(owner));
	const all = ["a", "b", "c"].flatMap((owner) => Array.from({ length: 250 }, () => refuse(owner)));
	all.push(refuse("d"));
	await Promise.all(all);
	expect(order.indexOf("d")).toBeLessThan(8);
});

test("the turn queue runs a refused owner's work at once if the clock is set back", async () => {
	const ahead = performance.now() + 3_600_000;
	const clock = spyOn(performance, "now").mockReturnValue(ahead);
	const turns = createProcessorTurns();
	clock.mockRestore();
	turns.refused("a", 30);
	expect(await turns.run("a", () => "done")).toBe("done");
});
