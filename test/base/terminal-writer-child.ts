/** Writes a line to its terminal every few milliseconds, and tells its parent which one. */
import { createLineOutput } from "../../src/base/line-output.ts";
import { terminalWriter } from "../../src/base/terminal-writer.ts";

const write = terminalWriter(2);
if (write === undefined) throw new Error("there is no way to the terminal");
const output = createLineOutput(write, () => undefined);
let at = 0;
setInterval(() => {
	output.write(`line ${at} ${"x".repeat(200)}.`);
	process.send?.(at);
	at += 1;
}, 2);
