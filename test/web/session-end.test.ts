import { expect, test } from "bun:test";
import { createNewest } from "../../src/web/newest.ts";
import { createSessionEnd } from "../../src/web/session-end.ts";

test("a late answer to a former session ends none, one to the session that is shown does, until another is read", () => {
	const end = createSessionEnd();
	const former = end.mark();
	end.viewerRead();
	expect([end.noSession(former), end.isOver()]).toEqual([false, false]);
	const present = end.mark();
	expect([end.noSession(present), end.isOver()]).toEqual([true, true]);
	// The page was held: somebody else has signed in by the time that it may be left.
	end.viewerRead();
	expect(end.isOver()).toBe(false);
});

test("of readings that overlap the last one holds, in whatever order they are answered; each is over with it", async () => {
	for (const order of [
		[0, 1, 2],
		[0, 2, 1],
		[1, 0, 2],
		[1, 2, 0],
		[2, 0, 1],
		[2, 1, 0],
	]) {
		const taken: number[] = [];
		const over: number[] = [];
		const read = createNewest<number>((answer) => void taken.push(answer));
		const answers = [0, 1, 2].map(() => Promise.withResolvers<number>());
		const reads = answers.map(({ promise }) => read(() => promise).then(() => over.push(taken.length)));
		for (const nth of order) {
			answers[nth]?.resolve(nth);
			await new Promise((resolve) => setImmediate(resolve));
		}
		await Promise.all(reads);
		expect([order, taken, over]).toEqual([order, [2], [1, 1, 1]]);
	}
});

test("a reading that failed and was followed by another one ends as that does", async () => {
	const taken: string[] = [];
	const read = createNewest<string>((answer) => void taken.push(answer));
	const first = read(() => Promise.reject(new Error("unreachable")));
	const second = read(async () => "the viewer");
	await Promise.all([first, second]);
	expect(taken).toEqual(["the viewer"]);
	expect(await read(() => Promise.reject(new Error("away"))).catch((error: Error) => error.message)).toBe("away");
	expect(taken).toEqual(["the viewer"]);
});
