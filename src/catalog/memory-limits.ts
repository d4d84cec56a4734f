import type { Log } from "../base/log.ts";
import type { Catalog } from "./catalog.ts";
import { type ServiceLimits, withDerivedLimits } from "./service-limits.ts";

const MB = 1024 * 1024;
/**
 * A process whose bodies reach their bound takes several times as much: a body is bytes, text, values and bytes again on its way, and
 * the collector frees the former ones late. 5 to 14 times were measured. Answers then take a quarter of the memory at most
 * (`service-limits.ts`): those that wait to be read are bytes, and few of the others are read at once (`upstream/call/answer-memory.ts`).
 */
const MEMORY_OF_BODIES = 16;

/**
 * The catalogue with its bounds of memory lowered to what this process may have: by default they are for 4 GB. Beyond them the kernel
 * would end the process, with everybody's streams, where one customer's large requests should have been refused.
 */
export function withinMemory(whole: Catalog, deps: { log: Log; memoryBytes: number }): Catalog {
	const { log, memoryBytes } = deps;
	let given: ServiceLimits | undefined;
	let held: ServiceLimits;

	function limits(): ServiceLimits {
		const now = whole.limits();
		if (now === given) return held;
		given = now;
		held = limitsWithin(now, memoryBytes);
		if (held !== now) {
			log.info("the limits are lowered to the memory that there is", {
				memory_mb: inMb(memoryBytes),
				body_mb: inMb(held.bodyBytesMax),
				body_memory_mb: inMb(held.bodyMemoryBytesMax),
			});
		}
		return held;
	}

	return { ...whole, limits };
}

/** The same limits where the memory holds them. */
export function limitsWithin(limits: ServiceLimits, memoryBytes: number): ServiceLimits {
	const bodies = wholeMb(memoryBytes / MEMORY_OF_BODIES);
	if (bodies >= limits.bodyMemoryBytesMax) return limits;
	const bodyBytesMax = Math.min(limits.bodyBytesMax, bodies);
	return withDerivedLimits({ ...limits, bodyMemoryBytesMax: bodies, bodyBytesMax });
}

const wholeMb = (bytes: number) => Math.max(1, Math.floor(bytes / MB)) * MB;
const inMb = (bytes: number) => Math.floor(bytes / MB);
