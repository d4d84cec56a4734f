import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { untilEnd } from "../support/at-end.ts";
import { waitFor } from "../support/wait.ts";

const STOP = "\x13";
const GO_ON = "\x11";
/** More than a terminal takes while nobody reads. */
const LINES = 500;

test.skipIf(!existsSync("/proc/self/fd"))(
	"who writes to a terminal that is stopped goes on, and says all of it later",
	async () => {
		let shown = "";
		let said = -1;
		const decoder = new TextDecoder();
		const child = Bun.spawn([process.execPath, join(import.meta.dir, "terminal-writer-child.ts")], {
			ipc: (at) => {
				said = at as number;
			},
			terminal: {
				cols: 300,
				data: (_, bytes) => {
					shown += decoder.decode(bytes, { stream: true });
				},
			},
		});
		untilEnd({ stop: async () => child.kill("SIGKILL") });
		const seen = () => [...shown.matchAll(/line (\d+) x{200}\.\r\n/g)].map(([, at]) => Number(at));
		await waitFor(() => seen().length > 0, "the first line");
		child.terminal?.write(STOP);
		await waitFor(() => said - seen().length > LINES, "lines that are not shown", 20_000);
		child.terminal?.write(GO_ON);
		const last = said;
		await waitFor(() => (seen().at(-1) ?? 0) >= last, "all of them", 20_000);
		expect(seen()).toEqual(Array.from(seen(), (_, at) => at));
	},
	60_000,
);
