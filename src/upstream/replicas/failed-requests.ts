import type { Clock } from "../../base/clock.ts";

/** Time within which the same failing request counts as repeated. */
const REPEATED_MS = 60_000;
/** Most requests that are remembered. The oldest is dropped, so its repetition counts as a first failure. */
const REMEMBERED_MAX = 100;
/** Bytes at the end of a file that are hashed: pieces of a recording often have one length and begin alike. */
const FILE_END_BYTES = 64 * 1024;

/** Latest requests to a model on which two replicas failed, by digest. */
export function createFailedRequests(clock: Clock) {
	const failedAtMs = new Map<string, number>();
	return {
		/** Remembers a failure. True if the account's same request also failed within the last minute. */
		async isRepeated({ accountId, request }: { accountId: string; request: object }): Promise<boolean> {
			const file = Object.values(request).find((value) => value instanceof Blob);
			const fileEnd = file === undefined ? "" : await file.slice(-FILE_END_BYTES).bytes();
			// JSON contains a file as `{}`, so its end is hashed too.
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
