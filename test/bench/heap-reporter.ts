/**
 * Preloaded into a process whose objects are counted. On SIGUSR2 it writes counts and bytes of live objects by kind to
 * the file HEAP_REPORT. With BUN_JSC_useGC=0 nothing is collected, so that the difference of two reports is what was
 * allocated in between. With HEAP_COLLECTS=young a young collection precedes each report on SIGUSR2, and full
 * collections precede each report on SIGPROF.
 */
import { edenGC, heapStats } from "bun:jsc";
import { renameSync, writeFileSync } from "node:fs";

const path = process.env.HEAP_REPORT;
if (path === undefined) throw new Error("HEAP_REPORT names the file that the report goes to");

const isCollected = process.env.HEAP_COLLECTS === "young";
/** Number of full collections, because objects that one collection frees may have held others. */
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
	// Size of the heap's blocks and of the used part, both with external memory.
	const bytes = isOfHeld ? heapSize : heapCapacity + extraMemorySize;
	writeFileSync(`${path}.new`, JSON.stringify({ bytes, objects: objectTypeCounts }));
	renameSync(`${path}.new`, path as string);
}
