import { expect, test } from "bun:test";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { createLineOutput, type WritePiece } from "../../src/base/line-output.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { waitFor } from "../support/wait.ts";

const LINES = 100_000;

/** Starts processes that share one pipe as stderr. This process reads the pipe late, as a hanging log reader would. */
function startOnPipe(lines: number, names: readonly string[] = ["line"]) {
	const path = join(temporaryFolder(), "pipe");
	expect(Bun.spawnSync(["mkfifo", path]).success).toBe(true);
	const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
	const processes = names.map((name) =>
		Bun.spawn([process.execPath, join(import.meta.dir, "line-output-child.ts"), String(lines), name], {
			stdio: ["pipe", "pipe", pipe],
		}),
	);
	const buffer = Buffer.alloc(64 * 1024);
	let text = "";
	return {
		processes,
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
			for (const { stdin } of processes) stdin.end();
			const exitCodes = await Promise.all(processes.map(({ exited }) => exited));
			closeSync(pipe);
			return exitCodes;
		},
	};
}

async function firstWords(stream: ReadableStream<Uint8Array>): Promise<string> {
	const reader = stream.getReader();
	const { value } = await reader.read();
	reader.releaseLock();
	return new TextDecoder().decode(value);
}

test("unread log lines use bounded memory, and a later line counts the dropped ones", async () => {
	const child = startOnPipe(LINES);
	for (const { stdout } of child.processes) expect(await firstWords(stdout)).toStartWith("written");
	await waitFor(() => /^lost \d+$/m.test(child.read()), "the line that says how many are lost");
	const said = child.read();
	const lost = Number(/^lost (\d+)$/m.exec(said)?.[1]);
	const seen = [...said.matchAll(/^line (\d+) /gm)].map(([, at]) => Number(at));
	// The lines that arrived before the reader stopped are complete and in order.
	expect(seen).toEqual(Array.from(seen, (_, at) => at));
	expect([seen.length + lost, lost > LINES / 2]).toEqual([LINES, true]);
	expect(await child.ended()).toEqual([0]);
}, 60_000);

test("log lines of several processes stay whole on a full pipe", async () => {
	const names = ["first", "second", "third"];
	const lines = 5_000;
	const children = startOnPipe(lines, names);
	for (const { stdout } of children.processes) expect(await firstWords(stdout)).toStartWith("written");
	const whole = () => children.read().match(/^(first|second|third) \d+ x+\.$/gm) ?? [];
	await waitFor(() => children.read().split("\n").length > names.length * lines, "all of them", 60_000);
	expect(whole()).toHaveLength(names.length * lines);
	expect(await children.ended()).toEqual([0, 0, 0]);
}, 60_000);

test("the first log line after a full disk begins on a new line", () => {
	const taken: string[] = [];
	const full = Object.assign(new Error("no space"), { code: "ENOSPC" });
	const answers: (Error | undefined)[] = [undefined, full, full];
	const onDisk: WritePiece = (piece, written) => {
		const error = answers.shift();
		taken.push(error === undefined ? piece : piece.slice(0, 3));
		written(error ?? null);
	};
	const output = createLineOutput(onDisk, (lines) => output.write(`lost ${lines}`));
	for (const line of ["first", "second", "third", "fourth", "fifth"]) output.write(line);
	expect(taken.join("")).toBe("first\nsec\nth\nfourth\nlost 2\nfifth\n");
});

test("a process continues after the reader of its log has ended", async () => {
	const child = Bun.spawn([process.execPath, join(import.meta.dir, "line-output-child.ts"), "20000"], {
		stdio: ["pipe", "pipe", "pipe"],
	});
	await child.stderr.cancel();
	expect(await firstWords(child.stdout)).toStartWith("written");
	child.stdin.write("one\ntwo\n");
	child.stdin.end();
	expect(await child.exited).toBe(0);
}, 60_000);
