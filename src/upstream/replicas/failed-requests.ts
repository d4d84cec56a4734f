import type { Clock } from "../../base/clock.ts";

/** Time within which the same failing request counts as a repetition. */
const REPEATED_MS = 60_000;
/** Limit of remembered requests; the oldest is dropped, so its repetition counts as a first failure. */
const REMEMBERED_MAX = 100;

/** Last requests to a model on which two replicas failed, by digest. */
export function createFailedRequests(clock: Clock) {
	const failedAtMs = new Map<string, number>();
	return {
		/** Remembers a failure. Returns whether the account's same request has failed within the last minute. */
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

/** Files of equal length count as equal, because their bytes are not read again. */
function withoutFiles(_name: string, value: unknown): unknown {
	return value instanceof Blob ? value.size : value;
}
