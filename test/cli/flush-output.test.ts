import { expect, test } from "bun:test";
import { flushOutput } from "../../src/cli/print.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const never = new Promise(() => undefined);

/** Returns the seconds that `flushOutput` waits. `unread` has the number of unread bytes after each second. */
async function waits(unread: readonly number[], said: (seconds: number) => boolean = () => false): Promise<number> {
	const clock = createManualClock();
	const end = Promise.withResolvers<void>();
	let seconds = 0;
	let isOver = false;
	const over = flushOutput(clock, Promise.race([never, end.promise]), () => unread[seconds] ?? 0).then(() => {
		isOver = true;
	});
	while (!isOver && seconds < 100) {
		seconds += 1;
		if (said(seconds)) end.resolve();
		else clock.advance(1_000);
		for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
	}
	await over;
	return seconds;
}

test("a slow log reader gets the last lines; a stalled one delays the exit by 1 s", async () => {
	expect(await waits([9, 9, 9])).toBe(1);
	expect(await waits([9, 8, 7, 7])).toBe(3);
	expect(await waits([9, 8, 7, 6], (seconds) => seconds === 3)).toBe(3);
});

test("a log reader delays the exit of a process by at most five seconds", async () => {
	expect(await waits(Array.from({ length: 100 }, (_, at) => 1_000 - at))).toBe(5);
});
