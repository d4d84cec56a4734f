/**
 * Says when a request of an open loop is due: a byte on standard output for each arrival, or for several that are due
 * together. A process of its own, because a timer of the event loop is a millisecond late, and waiting in the loop's own
 * thread would hold up the answers. Its arguments: an `ArrivalOptions` as JSON, and the start by the shared clock (ms).
 */
import { writeSync } from "node:fs";
import type { ArrivalOptions } from "./arrivals.ts";
import { arrivalsOf } from "./arrivals.ts";
import { sharedMs } from "./shared-clock.ts";

const [options, startAtMs] = process.argv.slice(2);
const due = arrivalsOf(JSON.parse(options as string) as ArrivalOptions);
const start = Number(startAtMs);
/** Nobody wakes it: the wait ends by its time alone, which a wait on memory counts in fractions of a millisecond. */
const never = new Int32Array(new SharedArrayBuffer(4));
const STDOUT = 1;

for (let next = 0; next < due.length; ) {
	const leftMs = start + (due[next] as number) - sharedMs();
	if (leftMs > 0) {
		Atomics.wait(never, 0, 0, leftMs);
		continue;
	}
	const passedMs = sharedMs() - start;
	while (next < due.length && (due[next] as number) <= passedMs) next += 1;
	writeSync(STDOUT, ".");
}
