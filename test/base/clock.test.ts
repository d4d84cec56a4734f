import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";

test("a delay that expired while the process stalled ends after waiting input was read", async () => {
	const came: string[] = [];
	const { promise, resolve } = Promise.withResolvers<void>();
	const child = Bun.spawn(["sh", "-c", "echo ready; read go; sleep 0.2; echo here"], { stdin: "pipe", stdout: "pipe" });
	const reader = child.stdout.getReader();
	await reader.read();
	void reader.read().then(() => came.push("read"));
	systemClock.after(100, () => {
		came.push("late");
		resolve();
	});
	child.stdin.write("\n");
	child.stdin.flush();
	Bun.sleepSync(800);
	await promise;
	expect(came).toEqual(["read", "late"]);
	// Blocks the event loop. Then a due timer runs at once, and one that is cancelled after the stall does not.
	const startMs = performance.now();
	await new Promise<void>((done) => systemClock.after(5, done));
	expect(performance.now() - startMs).toBeLessThan(500);
	const cancel = systemClock.after(100, () => came.push("cancelled"));
	const cancelled = new Promise<void>((done) => {
		setTimeout(() => {
			cancel();
			systemClock.after(150, done);
		}, 101);
	});
	Bun.sleepSync(800);
	await cancelled;
	expect(came).toEqual(["read", "late"]);
});
