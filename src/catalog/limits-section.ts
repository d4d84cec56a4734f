import { assert } from "../base/assert.ts";
import { DEFAULT_LIMITS, type ServiceLimits, type SetLimits, withDerivedLimits } from "./service-limits.ts";
import type { YamlReader } from "./yaml-reader.ts";
import type { YamlField } from "./yaml-scalars.ts";

/** One field of `limits:`. A value in the file times `scale` is the value in SetLimits. */
export interface LimitField {
	/** The name in `tollgate.yaml`; `_s` means seconds, `_mb` mebibytes. */
	readonly name: string;
	readonly limit: keyof SetLimits;
	readonly scale: number;
	readonly min: number;
	readonly max: number;
	readonly integer: boolean;
	readonly meaning: string;
}

const MS_PER_S = 1000;
const BYTES_PER_MB = 1024 * 1024;

const seconds = (name: string, limit: keyof SetLimits, min: number, max: number, meaning: string): LimitField => ({
	name: `${name}_s`,
	limit,
	scale: MS_PER_S,
	min,
	max,
	integer: false,
	meaning,
});
const count = (name: string, limit: keyof SetLimits, min: number, max: number, meaning: string): LimitField => ({
	name,
	limit,
	scale: 1,
	min,
	max,
	integer: true,
	meaning,
});
const megabytes = (name: string, limit: keyof SetLimits, max: number, meaning: string): LimitField => ({
	...count(name, limit, 1, max, meaning),
	scale: BYTES_PER_MB,
});

/** Every field of `limits:`, with its bounds in the file's unit. README.md has the same list with more detail. */
export const LIMIT_FIELDS: readonly LimitField[] = Object.freeze([
	seconds("status_hold", "holdStatusMs", 0, 300, "longest wait for a first event before the status goes out"),
	seconds("connect", "connectMs", 0.1, 120, "longest time to reach an upstream"),
	seconds("first_event", "firstEventMs", 1, 3600, "longest time to an upstream's first event"),
	seconds("silence", "silenceMs", 1, 3600, "longest silence between two events"),
	seconds("total", "totalMs", 1, 86_400, "longest request"),
	seconds("keep_alive", "keepAliveCommentMs", 1, 300, "a comment is sent on a stream idle for this long"),
	count(
		"breaker_failures_in_row",
		"breakerFailuresInRow",
		1,
		1000,
		"failures in a row, of several accounts or proved to be its own, that take a replica out",
	),
	{
		...count(
			"breaker_failure_share",
			"breakerFailureShare",
			0.05,
			1,
			"share of the last 20 calls that may fail, of several accounts",
		),
		integer: false,
	},
	seconds("breaker_cool", "breakerCoolMs", 0.1, 3600, "how long a failing replica rests at first; doubles"),
	seconds("breaker_cool_max", "breakerCoolMsMax", 0.1, 86_400, "how long it rests at most"),
	megabytes("body_mb", "bodyBytesMax", 1024, "largest request body; a larger one is refused with 413"),
	megabytes("body_memory_mb", "bodyMemoryBytesMax", 65_536, "bodies held at once; beyond it 503 `overloaded`"),
	megabytes("file_mb", "fileBytesMax", 1024, "largest file for batches; a larger one is refused with 413"),
	megabytes("files_account_mb", "fileAccountBytesMax", 10_485_760, "files of one account; beyond it 409"),
	count("auth_failures_per_minute", "authFailuresPerMinute", 1, 1_000_000, "failed authentications per address"),
	count("queue_length", "queueLengthMax", 0, 1_000_000, "requests per model that may wait for a free replica"),
	seconds("queue_wait", "queueWaitMs", 0, 3600, "longest wait for a free replica"),
	count(
		"open_requests",
		"openRequestsMax",
		1,
		1_000_000,
		"requests of one gateway process at once, streams and waiting ones among them; beyond it 503 `overloaded`",
	),
	{
		...count(
			"account_share",
			"accountShare",
			0.01,
			1,
			"share of a model's places, and of `open_requests`, that one account may hold at once, one at least",
		),
		integer: false,
	},
]);

/** Limits of former versions, and the value that replaces each. */
const FORMER_LIMITS: Readonly<Record<string, string>> = {
	body_memory_account_mb: "it follows from body_memory_mb (three eighths of it)",
	answer_memory_mb: "it follows from body_memory_mb (four times as much)",
	answer_memory_account_mb: "it follows from body_memory_mb (as much)",
	files_mb: "it follows from files_account_mb (ten times as much)",
	files_per_account: "an account has 10000 files at most",
	reader_stall_s: "it is 5 seconds",
	health_interval_s: "it follows from breaker_cool_s (half of it)",
};

/** Reads `limits:`. Missing fields keep their default. */
export function readLimits(reader: YamlReader, field: YamlField): ServiceLimits {
	const map = reader.map(
		field,
		LIMIT_FIELDS.map(({ name }) => name),
		(name) => (Object.hasOwn(FORMER_LIMITS, name) ? `${name} is no longer set: ${FORMER_LIMITS[name]}` : false),
	);
	const limits: { -readonly [name in keyof SetLimits]: number } = { ...DEFAULT_LIMITS };
	if (map === undefined) return DEFAULT_LIMITS;
	for (const known of LIMIT_FIELDS) {
		const given = map.get(known.name);
		const value = given && reader.number(given, known);
		if (value !== undefined) limits[known.limit] = known.scale === 1 ? value : Math.round(value * known.scale);
	}
	/** A default follows a value of the file. Only two values of the file can contradict each other. */
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
	return withDerivedLimits(limits);
}

function limitField(name: string): LimitField {
	const found = LIMIT_FIELDS.find((field) => field.name === name);
	assert(found !== undefined, `there is a limit ${name}`);
	return found;
}
