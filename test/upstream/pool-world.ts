import type { DialectName } from "../../src/catalog/model.ts";
import type { ServiceLimits } from "../../src/catalog/service-limits.ts";
import { createPool } from "../../src/upstream/replicas/pool.ts";
import { createReplica, type Replica } from "../../src/upstream/replicas/replica.ts";
import type { Ticket } from "../../src/upstream/replicas/ticket.ts";
import { limitsWith } from "../support/upstream-catalog.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { UPSTREAM_SPEC } from "../support/upstream-set.ts";

export const NONE: ReadonlySet<Replica> = new Set();

/** A pool of replicas with these places, a manual clock, and functions that ask for a place or take a free one. */
export function setUpPool(
	places: readonly number[],
	more: Partial<ServiceLimits> = {},
	dialect: DialectName = "openai",
) {
	const clock = createManualClock();
	const limits = limitsWith({
		queueLengthMax: 3,
		queueWaitMs: 1_000,
		breakerFailuresInRow: 2,
		breakerCoolMs: 5_000,
		accountShare: 1,
		...more,
	});
	const replicas = places.map((maxConcurrency, index) => {
		const spec = { ...UPSTREAM_SPEC, dialect, url: `http://r${index}/v1`, maxConcurrency };
		return createReplica({ clock }, { modelId: "m", alias: `m#${index}`, spec, limits: () => limits });
	});
	const pool = createPool({ clock }, { limits: () => limits });
	pool.replace(replicas);
	const signal = new AbortController().signal;
	const acquire = (more: Partial<Parameters<typeof pool.acquire>[0]> = {}) =>
		pool.acquire({ routed: undefined, exclude: NONE, signal, accountId: "acc_test", ...more });
	const take = (more: Parameters<typeof acquire>[0] = {}): Ticket => {
		const place = acquire(more);
		if (place instanceof Promise) throw new Error("there was no place");
		return place;
	};
	return { clock, pool, replicas, acquire, take };
}

/** A promise's outcome after all pending microtasks, or "pending". */
export async function now<T>(promise: T | Promise<T>): Promise<T | "pending"> {
	return Promise.race([promise, new Promise<"pending">((resolve) => setImmediate(() => resolve("pending")))]);
}
