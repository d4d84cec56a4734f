import { describe, expect, test } from "bun:test";
import { createEnds } from "../../src/base/ends.ts";
import { createLog, silentLog } from "../../src/base/log.ts";
import { createManualClock } from "../support/upstream-clock.ts";

describe("the end of the parts", () => {
	test("comes in reverse order, once each, and one that fails keeps no other from it", async () => {
		const lines: string[] = [];
		const log = createLog({ level: "debug", write: (line) => void lines.push(line) });
		const ends = createEnds({ clock: createManualClock(), log });
		const done: string[] = [];
		ends.add(() => done.push("first"));
		ends.add(() => {
			throw new Error("broken");
		});
		ends.add(async () => done.push("last"));
		await ends.run();
		await ends.run();
		expect(done).toEqual(["last", "first"]);
		expect(lines).toHaveLength(1);
	});

	test("does not wait for a part beyond its own deadline, and waits until then", async () => {
		const clock = createManualClock();
		const ends = createEnds({ clock, log: silentLog });
		const done: string[] = [];
		const shutDown = Promise.withResolvers<void>();
		ends.add(() => done.push("first"));
		ends.add(() => shutDown.promise.then(() => done.push("slow in order")), 120_000);
		ends.add(() => new Promise(() => {}));
		const over = ends.run();
		clock.advance(4_999);
		await Promise.resolve();
		expect(done).toEqual([]);
		clock.advance(1);
		// The one that is left hanging gives way to the slow one, which has two minutes.
		await settle();
		clock.advance(100_000);
		await settle();
		expect(done).toEqual([]);
		shutDown.resolve();
		await over;
		expect(done).toEqual(["slow in order", "first"]);
	});
});

/** Lets everything run that is due. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
