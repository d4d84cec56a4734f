import type { Log } from "../base/log.ts";
import type { Catalog } from "./catalog.ts";
import { type ServiceLimits, withDerivedLimits } from "./service-limits.ts";

const MB = 1024 * 1024;
/**
 * A process whose bodies reach their bound takes several times as much: 5 to 14 times were measured. A body exists as
 * bytes, text, values and bytes again, and the collector frees the former ones late. Answers then take at most a
 * quarter of the memory (`service-limits.ts`). Answers that wait to be read are bytes; few others are read at once
 * (`upstream/call/answer-memory.ts`).
 */
const MEMORY_OF_BODIES = 16;

/**
 * Lowers the catalogue's memory bounds to this process's share; the defaults are for 4 GB. Above the share the kernel
 * would kill the process with all its streams, instead of one customer's large request being refused.
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
			log.info("the limits are lowered to fit the available memory", {
				memory_mb: inMb(memoryBytes),
				body_mb: inMb(held.bodyBytesMax),
				body_memory_mb: inMb(held.bodyMemoryBytesMax),
			});
		}
		return held;
	}

	return { ...whole, limits };
}

/** Returns the same object if the memory suffices. */
export function limitsWithin(limits: ServiceLimits, memoryBytes: number): ServiceLimits {
	const bodies = wholeMb(memoryBytes / MEMORY_OF_BODIES);
	if (bodies >= limits.bodyMemoryBytesMax) return limits;
	const bodyBytesMax = Math.min(limits.bodyBytesMax, bodies);
	return withDerivedLimits({ ...limits, bodyMemoryBytesMax: bodies, bodyBytesMax });
}

const wholeMb = (bytes: number) => Math.max(1, Math.floor(bytes / MB)) * MB;
const inMb = (bytes: number) => Math.floor(bytes / MB);
