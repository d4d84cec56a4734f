import { assert } from "../base/assert.ts";
import type { Log } from "../base/log.ts";
import { type AccountLimits, readAccountLimits } from "./account-limits.ts";
import type { YamlField, YamlReader } from "./yaml-reader.ts";

/**
 * A row for each field of `limits:` in `tollgate.yaml`: name, the limit that it sets, default, lower and upper bound in
 * the file's unit (`_s` seconds, `_mb` mebibytes), meaning. The room's README has the same list with more detail.
 */
const FIELDS = [
	["status_hold_s", "holdStatusMs", 10, 0, 300, "longest wait for a first event before the response status is sent"],
	["connect_s", "connectMs", 5, 0.1, 120, "longest time to reach an upstream"],
	["first_event_s", "firstEventMs", 300, 1, 3600, "longest time to an upstream's first event"],
	["silence_s", "silenceMs", 120, 1, 3600, "longest silence between two events"],
	["total_s", "totalMs", 1800, 1, 86_400, "longest request"],
	["keep_alive_s", "keepAliveCommentMs", 10, 1, 300, "a comment is sent on a stream that is idle for this long"],
	[
		...(["breaker_failures_in_row", "breakerFailuresInRow", 5, 1, 1000] as const),
		"consecutive failures after which a replica gets no requests",
	],
	["breaker_failure_share", "breakerFailureShare", 0.5, 0.05, 1, "share of the last 20 calls that may fail"],
	["breaker_cool_s", "breakerCoolMs", 10, 0.1, 3600, "how long a failing replica gets no requests; doubles"],
	["breaker_cool_max_s", "breakerCoolMsMax", 120, 0.1, 86_400, "maximum of breaker_cool_s after doubling"],
	["body_mb", "bodyBytesMax", 32, 1, 1024, "largest request body; a larger one is refused with 413"],
	["body_memory_mb", "bodyMemoryBytesMax", 256, 1, 65_536, "memory for request bodies; beyond it 503 `overloaded`"],
	["file_mb", "fileBytesMax", 512, 1, 1024, "largest file for batches; a larger one is refused with 413"],
	["files_account_mb", "fileAccountBytesMax", 10_240, 1, 10_485_760, "files of one account; beyond it 409"],
	["auth_failures_per_minute", "authFailuresPerMinute", 60, 1, 1_000_000, "failed authentications per address"],
	["queue_length", "queueLengthMax", 1024, 0, 1_000_000, "requests per model that may wait for a free replica"],
	["queue_wait_s", "queueWaitMs", 10, 0, 3600, "longest wait for a free replica"],
	[
		...(["open_requests", "openRequestsMax", 16_384, 1, 1_000_000] as const),
		"requests of one gateway process at once, including streams and waiting requests; beyond it 503 `overloaded`",
	],
	[
		...(["account_share", "accountShare", 0.75, 0.01, 1] as const),
		"share of a model's places, and of `open_requests`, that one account may hold at once, one at least",
	],
] as const;

/** Limits that the file can set, in milliseconds and bytes. */
export type ConfigurableLimits = Readonly<Record<(typeof FIELDS)[number][1], number>>;

/** A field of `limits:`. The value in the file times `scale` is the value in ConfigurableLimits. */
export interface LimitField {
	readonly name: string;
	readonly limit: keyof ConfigurableLimits;
	readonly scale: number;
	readonly min: number;
	readonly max: number;
	readonly integer: boolean;
	readonly meaning: string;
}

export const LIMIT_FIELDS: readonly LimitField[] = FIELDS.map(([name, limit, , min, max, meaning]) => {
	const scale = name.endsWith("_s") ? 1000 : name.endsWith("_mb") ? 1024 * 1024 : 1;
	// Fields in seconds and shares may have decimals; other fields are whole numbers.
	return Object.freeze({ name, limit, scale, min, max, integer: scale !== 1000 && max > 1, meaning });
});

export interface ServiceLimits extends ConfigurableLimits {
	/** Limits of accounts by tag, in the order of the file. */
	readonly accounts: readonly AccountLimits[];
	/** Share of the memory for request bodies that one account may use. */
	readonly bodyMemoryAccountBytesMax: number;
	/** Memory for long answers that clients have not read yet: of all accounts, and of one account. */
	readonly answerMemoryBytesMax: number;
	readonly answerMemoryAccountBytesMax: number;
	readonly filesBytesMax: number;
	/** Time between two health checks of an idle server. */
	readonly healthIntervalMs: number;
}

/** An account's share of the memory for bodies: more than an equal share, because most bodies are small. */
const BODY_ACCOUNT_SHARE = 3 / 8;
/** Unread answers may use a quarter of the bodies' memory: an answer is only bytes, a body also text and values. */
const ANSWERS_PER_BODIES = 4;
const ANSWER_ACCOUNT_SHARE = 1 / 4;
/** Space of all files: this many accounts may use their whole space. */
const FULL_FILE_ACCOUNTS = 10;
const HEALTH_INTERVAL_MS_MIN = 500;

export function withDerivedLimits(set: ConfigurableLimits & Partial<Pick<ServiceLimits, "accounts">>): ServiceLimits {
	const answerMemoryBytesMax = set.bodyMemoryBytesMax * ANSWERS_PER_BODIES;
	return Object.freeze({
		accounts: [],
		...set,
		bodyMemoryAccountBytesMax: Math.max(Math.floor(set.bodyMemoryBytesMax * BODY_ACCOUNT_SHARE), set.bodyBytesMax),
		answerMemoryBytesMax,
		answerMemoryAccountBytesMax: answerMemoryBytesMax * ANSWER_ACCOUNT_SHARE,
		filesBytesMax: set.fileAccountBytesMax * FULL_FILE_ACCOUNTS,
		healthIntervalMs: Math.max(set.breakerCoolMs / 2, HEALTH_INTERVAL_MS_MIN),
	});
}

export const DEFAULT_LIMITS: ServiceLimits = withDerivedLimits(
	Object.fromEntries(
		FIELDS.map(([, limit, value], at) => [limit, value * (LIMIT_FIELDS[at]?.scale ?? 1)]),
	) as ConfigurableLimits,
);

/** Reads `limits:`. Missing fields get their default. */
export function readLimits(reader: YamlReader, field: YamlField | undefined): ServiceLimits {
	const map = reader.map(field, [...LIMIT_FIELDS.map(({ name }) => name), "accounts"]);
	const limits: { -readonly [name in keyof ConfigurableLimits]: number } = { ...DEFAULT_LIMITS };
	if (map === undefined) return DEFAULT_LIMITS;
	for (const known of LIMIT_FIELDS) {
		const value = reader.number(map.get(known.name), known);
		if (value !== undefined) limits[known.limit] = known.scale === 1 ? value : Math.round(value * known.scale);
	}
	/** If the file sets only one of two related limits, adapts the other's default. Reports two that contradict. */
	const keepOrder = (lower: string, upper: string) => {
		const [low, high] = [limitField(lower).limit, limitField(upper).limit];
		if (limits[low] <= limits[high]) return;
		const given = map.get(lower);
		if (given === undefined) limits[low] = limits[high];
		else if (map.get(upper) === undefined) limits[high] = limits[low];
		else reader.report(given, `must not be greater than ${upper}`);
	};
	keepOrder("body_mb", "body_memory_mb");
	keepOrder("file_mb", "files_account_mb");
	keepOrder("breaker_cool_s", "breaker_cool_max_s");
	keepOrder("first_event_s", "total_s");
	keepOrder("silence_s", "total_s");
	return withDerivedLimits({ ...limits, accounts: readAccountLimits(reader, map.get("accounts")) });
}

function limitField(name: string): LimitField {
	const found = LIMIT_FIELDS.find((field) => field.name === name);
	assert(found !== undefined, `there is a limit ${name}`);
	return found;
}

const MB = 1024 * 1024;
/**
 * Memory per byte of a request body. 5 to 14 bytes were measured (bytes, text, values and bytes again, freed late), so
 * unread answers then use at most a quarter of the memory.
 */
const MEMORY_OF_BODIES = 16;

/** Lowers memory limits to what this process may use: if they exceeded it, the kernel would kill the process. */
export function withMemoryLimits<Whole extends { limits(): ServiceLimits }>(
	whole: Whole,
	{ log, memoryBytes }: { log: Log; memoryBytes: number },
) {
	let given: ServiceLimits | undefined;
	let held: ServiceLimits;

	function limits(): ServiceLimits {
		const now = whole.limits();
		if (now === given) return held;
		given = now;
		held = lowerLimitsToMemory(now, memoryBytes);
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

/** Returns `limits` itself if the limits fit into the memory. */
export function lowerLimitsToMemory(limits: ServiceLimits, memoryBytes: number): ServiceLimits {
	const bodies = wholeMb(memoryBytes / MEMORY_OF_BODIES);
	if (bodies >= limits.bodyMemoryBytesMax) return limits;
	const bodyBytesMax = Math.min(limits.bodyBytesMax, bodies);
	return withDerivedLimits({ ...limits, bodyMemoryBytesMax: bodies, bodyBytesMax });
}

const wholeMb = (bytes: number) => Math.max(1, Math.floor(bytes / MB)) * MB;
const inMb = (bytes: number) => Math.floor(bytes / MB);
