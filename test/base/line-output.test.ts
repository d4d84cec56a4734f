import { expect, test } from "bun:test";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/at-end.ts";
import { waitFor } from "../support/wait.ts";

const LINES = 100_000;

/** A process whose standard error is a pipe that this one opens and reads when it likes, as a reader of logs that hangs. */
function startOnPipe(lines: number) {
	const path = join(temporaryFolder(), "pipe");
	expect(Bun.spawnSync(["mkfifo", path]).success).toBe(true);
	const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
	const process_ = Bun.spawn([process.execPath, join(import.meta.dir, "line-output-child.ts"), String(lines)], {
		stdio: ["pipe", "pipe", pipe],
	});
	const buffer = Buffer.alloc(64 * 1024);
	let text = "";
	return {
		process: process_,
		/** All that is there by now. */
		read(): string {
			try {
				for (let bytes = 1; bytes > 0; ) {
					bytes = readSync(pipe, buffer);
					text += buffer.toString("utf8", 0, bytes);
				}
			} catch (error) {
				if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
			}
			return text;
		},
		async ended() {
			closeSync(pipe);
			process_.stdin.end();
			return process_.exited;
		},
	};
}

async function firstWords(stream: ReadableStream<Uint8Array>): Promise<string> {
	const reader = stream.getReader();
	const { value } = await reader.read();
	reader.releaseLock();
	return new TextDecoder().decode(value);
}

test("lines that nobody reads fill no memory, and how many are missing is said once somebody reads again", async () => {
	const child = startOnPipe(LINES);
	expect(await firstWords(child.process.stdout)).toStartWith("written");
	await waitFor(() => /^lost \d+$/m.test(child.read()), "the line that says how many are lost");
	const said = child.read();
	const lost = Number(/^lost (\d+)$/m.exec(said)?.[1]);
	const seen = [...said.matchAll(/^line (\d+) /gm)].map(([, at]) => Number(at));
	// Those that came through are the first, whole and in their order.
	expect(seen).toEqual(Array.from(seen, (_, at) => at));
	expect([seen.length + lost, lost > LINES / 2]).toEqual([LINES, true]);
	expect(await child.ended()).toBe(0);
}, 60_000);

test("a process goes on whose reader is gone", async () => {
	const child = Bun.spawn([process.execPath, join(import.meta.dir, "line-output-child.ts"), "20000"], {
		stdio: ["pipe", "pipe", "pipe"],
	});
	await child.stderr.cancel();
	expect(await firstWords(child.stdout)).toStartWith("written");
	child.stdin.write("one\ntwo\n");
	child.stdin.end();
	expect(await child.exited).toBe(0);
}, 60_000);
