/** Opens files until no file descriptor is left, then prints the process metrics. */
import { closeSync, openSync, writeSync } from "node:fs";
import { processReadings, residentBytes } from "../../src/ops/process-readings.ts";

const taken: number[] = [];
try {
	for (;;) taken.push(openSync("/dev/null", "r"));
} catch {}
const said = [`resident ${residentBytes()}`];
for (const { name, read } of processReadings(() => 0)) said.push(`${name} ${JSON.stringify(await read())}`);
for (const fd of taken) closeSync(fd);
writeSync(1, `${said.join("\n")}\nresident ${residentBytes()}\n`);
