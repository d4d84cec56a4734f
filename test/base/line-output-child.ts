/**
 * Writes so many numbered lines, as long as those of a log, to its standard error, says `written` on its standard output,
 * and one line more for each line that it hears: `bun line-output-child.ts LINES`.
 */
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { createLineOutput } from "../../src/base/line-output.ts";

const output = createLineOutput(process.stderr, (lines) => output.write(`lost ${lines}`));
const count = Number(process.argv[2]);
for (let at = 0; at < count; at++) output.write(`line ${at} ${"x".repeat(200)}`);
writeSync(1, "written\n");
for await (const line of createInterface({ input: process.stdin })) output.write(`heard ${line}`);
process.exit(0);
