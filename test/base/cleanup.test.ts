import { describe, expect, test } from "bun:test";
import { createCleanup } from "../../src/base/cleanup.ts";
import { createLog, silentLog } from "../../src/base/log.ts";
import { createManualClock } from "../support/upstream-clock.ts";

describe("cleanup", () => {
	test("runs each step once, the last added step first, even if a step fails", async () => {
		const lines: string[] = [];
		const log = createLog({ level: "debug", write: (line) => void lines.push(line) });
		const cleanup = createCleanup({ clock: createManualClock(), log });
		const done: string[] = [];
		cleanup.add(() => done.push("first"));
		cleanup.add(() => {
			throw new Error("broken");
		});
		cleanup.add(async () => done.push("last"));
		await cleanup.run();
		await cleanup.run();
		expect(done).toEqual(["last", "first"]);
		expect(lines).toHaveLength(1);
	});

	test("waits for each step until that step's deadline", async () => {
		const clock = createManualClock();
		const cleanup = createCleanup({ clock, log: silentLog });
		const done: string[] = [];
		const shutDown = Promise.withResolvers<void>();
		cleanup.add(() => done.push("first"));
		cleanup.add(() => shutDown.promise.then(() => done.push("slow in order")), 120_000);
		cleanup.add(() => new Promise(() => {}));
		const over = cleanup.run();
		clock.advance(4_999);
		await Promise.resolve();
		expect(done).toEqual([]);
		clock.advance(1);
		// The hanging clean-up is abandoned after the shared deadline. The slow one may take two minutes.
		await settle();
		clock.advance(100_000);
		await settle();
		expect(done).toEqual([]);
		shutDown.resolve();
		await over;
		expect(done).toEqual(["slow in order", "first"]);
	});

	test("has one common deadline for all steps that hang", async () => {
		const clock = createManualClock();
		const cleanup = createCleanup({ clock, log: silentLog });
		const done: string[] = [];
		cleanup.add(() => done.push("first"));
		for (let nth = 0; nth < 4; nth++) cleanup.add(() => new Promise(() => {}));
		const over = cleanup.run();
		for (const ms of [5_000, 200, 200, 200]) {
			expect(done).toEqual([]);
			clock.advance(ms);
			await settle();
		}
		await over;
		expect(done).toEqual(["first"]);
	});
});

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
