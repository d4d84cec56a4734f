/**
 * Preloaded into a process whose objects are counted: on SIGUSR2 it writes to the file HEAP_REPORT how many there are of
 * each kind and how many bytes they take. With BUN_JSC_useGC=0 nothing is ever collected, so that the difference of two
 * reports is what was allocated between them. With HEAP_COLLECTS=young a young collection comes before each report on SIGUSR2, so that
 * it tells what such a one leaves, and whole ones before each on SIGPROF, so that it tells what is held.
 */
import { edenGC, heapStats } from "bun:jsc";
import { renameSync, writeFileSync } from "node:fs";

const path = process.env.HEAP_REPORT;
if (path === undefined) throw new Error("HEAP_REPORT names the file that the report goes to");

const isCollected = process.env.HEAP_COLLECTS === "young";
/** What one collection lets go of may be what held more. */
const WHOLE_COLLECTIONS = 3;

process.on("SIGUSR2", () => {
	if (isCollected) edenGC();
	report(false);
});
process.on("SIGPROF", () => {
	for (let nth = 0; nth < WHOLE_COLLECTIONS; nth += 1) Bun.gc(true);
	report(true);
});

function report(isOfHeld: boolean): void {
	const { heapCapacity, heapSize, extraMemorySize, objectTypeCounts } = heapStats();
	// What its blocks take, and what is in use of them; either with what is held outside of it.
	const bytes = isOfHeld ? heapSize : heapCapacity + extraMemorySize;
	writeFileSync(`${path}.new`, JSON.stringify({ bytes, objects: objectTypeCounts }));
	renameSync(`${path}.new`, path as string);
}
