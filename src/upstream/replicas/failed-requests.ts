import type { Clock } from "../../base/clock.ts";

/** A request that fails again within this time is a repetition. */
const REPEATED_MS = 60_000;
/** Beyond so many the oldest is forgotten: its repetition counts as the first failure. */
const REMEMBERED_MAX = 100;

/** The last requests to a model on which two replicas failed, by digest. */
export function createFailedRequests(clock: Clock) {
	const failedAtMs = new Map<string, number>();
	return {
		/** Remembers a failure. Returns whether the same request of the account has failed within the last minute. */
		isRepeated({ accountId, request }: { accountId: string; request: object }): boolean {
			const digest = `${accountId} ${Bun.hash(JSON.stringify(request, withoutFiles))}`;
			const nowMs = clock.monotonicMs();
			const beforeMs = failedAtMs.get(digest);
			failedAtMs.delete(digest);
			failedAtMs.set(digest, nowMs);
			for (const oldest of failedAtMs.keys()) {
				if (failedAtMs.size <= REMEMBERED_MAX) break;
				failedAtMs.delete(oldest);
			}
			return beforeMs !== undefined && nowMs - beforeMs <= REPEATED_MS;
		},
	};
}

/** Files of equal length count as equal: their bytes are not read again. */
function withoutFiles(_name: string, value: unknown): unknown {
	return value instanceof Blob ? value.size : value;
}
