import type { Clock } from "../../base/clock.ts";

/** Time within which the same failing request counts as repeated. */
const REPEATED_MS = 60_000;
/** Maximum number of requests that are remembered. A dropped request's repetition counts as its first failure. */
const REMEMBERED_MAX = 100;
/** Bytes at a file's end that are hashed: pieces of one recording often have the same length and beginning. */
const FILE_END_BYTES = 64 * 1024;

/** Remembers, by digest, the latest requests to a model on which two replicas failed. */
export function createFailedRequests(clock: Clock) {
	const failedAtMs = new Map<string, number>();
	return {
		/** Remembers a failed request. Returns true if the account's same request failed within the last minute. */
		async isRepeated({ accountId, request }: { accountId: string; request: object }): Promise<boolean> {
			const file = Object.values(request).find((value) => value instanceof Blob);
			const fileEnd = file === undefined ? "" : await file.slice(-FILE_END_BYTES).bytes();
			// JSON writes a file as `{}`, so the file's end is hashed too.
			const digest = `${accountId} ${Bun.hash(JSON.stringify(request))} ${file?.size} ${Bun.hash(fileEnd)}`;
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
