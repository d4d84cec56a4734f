import type { Log } from "../base/log.ts";
import type { Catalog } from "./catalog.ts";
import type { ServiceLimits } from "./service-limits.ts";

const MB = 1024 * 1024;
/**
 * A process whose bodies reach their bound takes several times as much: a body is bytes, text, values and bytes again on its way, and
 * what it was is collected late. Seen were 5 to 14 times.
 */
const MEMORY_OF_BODIES = 16;
/** The same of answers: those that wait to be read are bytes already, and of those on their way little is read at once (`upstream/call/answer-memory.ts`). */
const MEMORY_OF_ANSWERS = 4;

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
				body_memory_account_mb: inMb(held.bodyMemoryAccountBytesMax),
				answer_memory_mb: inMb(held.answerMemoryBytesMax),
				answer_memory_account_mb: inMb(held.answerMemoryAccountBytesMax),
			});
		}
		return held;
	}

	return { ...whole, limits };
}

/** The same limits where the memory holds them. An account keeps its share, and room for one body of the largest size. */
export function limitsWithin(limits: ServiceLimits, memoryBytes: number): ServiceLimits {
	const bodies = wholeMb(Math.min(limits.bodyMemoryBytesMax, memoryBytes / MEMORY_OF_BODIES));
	const answers = wholeMb(Math.min(limits.answerMemoryBytesMax, memoryBytes / MEMORY_OF_ANSWERS));
	if (bodies >= limits.bodyMemoryBytesMax && answers >= limits.answerMemoryBytesMax) return limits;
	const body = Math.min(limits.bodyBytesMax, bodies);
	const ofBodies = bodies / limits.bodyMemoryBytesMax;
	const ofAnswers = answers / limits.answerMemoryBytesMax;
	return Object.freeze({
		...limits,
		bodyBytesMax: body,
		bodyMemoryBytesMax: bodies,
		bodyMemoryAccountBytesMax: Math.max(wholeMb(limits.bodyMemoryAccountBytesMax * ofBodies), body),
		answerMemoryBytesMax: answers,
		answerMemoryAccountBytesMax: wholeMb(limits.answerMemoryAccountBytesMax * ofAnswers),
	});
}

const wholeMb = (bytes: number) => Math.max(1, Math.floor(bytes / MB)) * MB;
const inMb = (bytes: number) => Math.floor(bytes / MB);
