/** The `limits:` section of `tollgate.yaml`. Every field has a default; times in milliseconds, sizes in bytes. */
export interface ServiceLimits {
	/** How long the status is held back for the upstream's first event, so that a failing replica can be replaced. */
	readonly holdStatusMs: number;
	readonly connectMs: number;
	readonly firstEventMs: number;
	/** The longest silence between two events. */
	readonly silenceMs: number;
	readonly totalMs: number;
	readonly keepAliveCommentMs: number;
	readonly breakerFailuresInRow: number;
	/** The share of the last 20 calls that may fail. */
	readonly breakerFailureShare: number;
	readonly breakerCoolMs: number;
	readonly breakerCoolMsMax: number;
	readonly bodyBytesMax: number;
	/** Of all bodies that are held at once, and of one account's among them. */
	readonly bodyMemoryBytesMax: number;
	readonly bodyMemoryAccountBytesMax: number;
	/** Of long answers that are not read yet, and of one account's among them. */
	readonly answerMemoryBytesMax: number;
	readonly answerMemoryAccountBytesMax: number;
	/** Of one uploaded file, of all files of an account, and of all that are kept. */
	readonly fileBytesMax: number;
	readonly fileAccountBytesMax: number;
	readonly filesBytesMax: number;
	readonly filesPerAccountMax: number;
	readonly authFailuresPerMinute: number;
	/** Requests that may wait for a replica with a free place, per model. */
	readonly queueLengthMax: number;
	readonly queueWaitMs: number;
	/** Requests that one gateway process has admitted and not settled. */
	readonly openRequestsMax: number;
	/** The share of a model's places, and of open requests, that one account may hold at once; the rest is for others. */
	readonly accountShare: number;
	/** How long a stream may have waited for its reader, in all, before its place goes to who waits for one. */
	readonly readerStallMs: number;
	readonly healthIntervalMs: number;
}

export const DEFAULT_LIMITS: ServiceLimits = Object.freeze({
	holdStatusMs: 10_000,
	connectMs: 5_000,
	firstEventMs: 300_000,
	silenceMs: 120_000,
	totalMs: 30 * 60_000,
	keepAliveCommentMs: 10_000,
	breakerFailuresInRow: 5,
	breakerFailureShare: 0.5,
	breakerCoolMs: 10_000,
	breakerCoolMsMax: 120_000,
	bodyBytesMax: 32 * 1024 * 1024,
	bodyMemoryBytesMax: 256 * 1024 * 1024,
	bodyMemoryAccountBytesMax: 96 * 1024 * 1024,
	answerMemoryBytesMax: 1024 * 1024 * 1024,
	answerMemoryAccountBytesMax: 256 * 1024 * 1024,
	fileBytesMax: 512 * 1024 * 1024,
	fileAccountBytesMax: 10 * 1024 * 1024 * 1024,
	filesBytesMax: 100 * 1024 * 1024 * 1024,
	filesPerAccountMax: 10_000,
	authFailuresPerMinute: 60,
	queueLengthMax: 1024,
	queueWaitMs: 10_000,
	openRequestsMax: 16_384,
	accountShare: 0.75,
	readerStallMs: 5_000,
	healthIntervalMs: 5_000,
});
