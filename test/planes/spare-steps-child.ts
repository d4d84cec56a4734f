/** Lets descriptors run short and be there again, look by look, under a low `ulimit -n`: prints what came of each look. */
import { closeSync, openSync } from "node:fs";
import { createLog } from "../../src/base/log.ts";
import { keepDescriptorsSpare } from "../../src/planes/spare-descriptors.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const LOOK_MS = 500;
const clock = createManualClock();
const held: number[] = [];
let closed = 0;
let lines = 0;
const log = createLog({
	level: "warn",
	write() {
		lines += 1;
	},
});
const server = {
	closeIdleConnections() {
		closed += 1;
		return 1;
	},
};
const spare = keepDescriptorsSpare({ clock, log }, server);

function look(files: "none" | "all"): void {
	try {
		while (files === "none") held.push(openSync("/dev/null", "r"));
	} catch {}
	if (files === "all") for (const file of held.splice(0)) closeSync(file);
	clock.advance(LOOK_MS);
	said.push([spare.areShort(), closed, lines]);
}

const said: unknown[] = [];
for (const files of ["all", "none", "none", "all", "none", "all"] as const) look(files);
clock.advance(60_000);
look("none");
console.log(JSON.stringify(said));
process.exit();
