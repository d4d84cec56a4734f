/**
 * The limits that `limits:` of `tollgate.yaml` sets, in milliseconds and bytes. `limits-section.ts` has their meanings.
 */
export interface SetLimits {
	/**
	 * The status is held until the upstream's first event, at most this long, so that a failing replica can be replaced.
	 */
	readonly holdStatusMs: number;
	readonly connectMs: number;
	readonly firstEventMs: number;
	readonly silenceMs: number;
	readonly totalMs: number;
	readonly keepAliveCommentMs: number;
	readonly breakerFailuresInRow: number;
	readonly breakerFailureShare: number;
	readonly breakerCoolMs: number;
	readonly breakerCoolMsMax: number;
	readonly bodyBytesMax: number;
	readonly bodyMemoryBytesMax: number;
	readonly fileBytesMax: number;
	readonly fileAccountBytesMax: number;
	readonly authFailuresPerMinute: number;
	readonly queueLengthMax: number;
	readonly queueWaitMs: number;
	readonly openRequestsMax: number;
	readonly accountShare: number;
}

/** Every limit in force: set and derived. */
export interface ServiceLimits extends SetLimits {
	/** One account's share of the request bodies held at once. */
	readonly bodyMemoryAccountBytesMax: number;
	/** Long answers that are not read yet: of all accounts, and of one account. */
	readonly answerMemoryBytesMax: number;
	readonly answerMemoryAccountBytesMax: number;
	/** The files of all accounts. */
	readonly filesBytesMax: number;
	/** Interval between health checks of a replica that answers no requests. */
	readonly healthIntervalMs: number;
}

/**
 * Most accounts send small bodies, so one account may exceed an equal share, and may always send one body of the
 * largest size.
 */
const BODY_ACCOUNT_SHARE = 3 / 8;
/** A waiting answer is bytes only; a body is bytes, text and values at once. */
const ANSWERS_PER_BODIES = 4;
const ANSWER_ACCOUNT_SHARE = 1 / 4;
/** All accounts together may store as much as this many full accounts. */
const FULL_FILE_ACCOUNTS = 10;
const HEALTH_INTERVAL_MS_MIN = 500;

/** Adds the derived limits. */
export function withDerivedLimits(set: SetLimits): ServiceLimits {
	const answerMemoryBytesMax = set.bodyMemoryBytesMax * ANSWERS_PER_BODIES;
	return Object.freeze({
		...set,
		bodyMemoryAccountBytesMax: Math.max(Math.floor(set.bodyMemoryBytesMax * BODY_ACCOUNT_SHARE), set.bodyBytesMax),
		answerMemoryBytesMax,
		answerMemoryAccountBytesMax: answerMemoryBytesMax * ANSWER_ACCOUNT_SHARE,
		filesBytesMax: set.fileAccountBytesMax * FULL_FILE_ACCOUNTS,
		healthIntervalMs: Math.max(set.breakerCoolMs / 2, HEALTH_INTERVAL_MS_MIN),
	});
}

export const DEFAULT_LIMITS: ServiceLimits = withDerivedLimits({
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
	fileBytesMax: 512 * 1024 * 1024,
	fileAccountBytesMax: 10 * 1024 * 1024 * 1024,
	authFailuresPerMinute: 60,
	queueLengthMax: 1024,
	queueWaitMs: 10_000,
	openRequestsMax: 16_384,
	accountShare: 0.75,
});
