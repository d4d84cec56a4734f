/**
 * Writes LINES numbered log lines to stderr and `written` to stdout, then one more log line for each line on stdin:
 * `bun line-output-child.ts LINES NAME`.
 */
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { createLineOutput } from "../../src/base/line-output.ts";

const [count, name = "line"] = process.argv.slice(2);
process.stderr.on("error", () => undefined);
const output = createLineOutput(
	(piece, written) => process.stderr.write(piece, written),
	(lines) => output.write(`lost ${lines}`),
);
for (let at = 0; at < Number(count); at++) output.write(`${name} ${at} ${"x".repeat(200)}.`);
writeSync(1, "written\n");
for await (const line of createInterface({ input: process.stdin })) output.write(`heard ${line}`);
await output.flushed();
process.exit(0);
