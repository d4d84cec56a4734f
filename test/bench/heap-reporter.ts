/**
 * Preloaded into a process whose objects are counted: on SIGUSR2 it writes to the file HEAP_REPORT how many there are of
 * each kind and how many bytes they take. With BUN_JSC_useGC=0 nothing is ever collected, so that the difference of two
 * reports is what was allocated between them. With HEAP_COLLECTS=young a young collection comes before each report, so that
 * it tells what such a one leaves.
 */
import { edenGC, heapStats } from "bun:jsc";
import { renameSync, writeFileSync } from "node:fs";

const path = process.env.HEAP_REPORT;
if (path === undefined) throw new Error("HEAP_REPORT names the file that the report goes to");

process.on("SIGUSR2", () => {
	if (process.env.HEAP_COLLECTS === "young") edenGC();
	const { heapCapacity, extraMemorySize, objectTypeCounts } = heapStats();
	writeFileSync(`${path}.new`, JSON.stringify({ bytes: heapCapacity + extraMemorySize, objects: objectTypeCounts }));
	renameSync(`${path}.new`, path);
});
