import { assert } from "../base/assert.ts";
import type { LimitField, ServiceLimits, SetLimits } from "./service-limits.ts";
import { DEFAULT_LIMITS, LIMIT_FIELDS, withDerivedLimits } from "./service-limits.ts";
import type { YamlReader } from "./yaml-reader.ts";
import type { YamlField } from "./yaml-scalars.ts";

/** Reads `limits:`. Missing fields keep their default. */
export function readLimits(reader: YamlReader, field: YamlField | undefined): ServiceLimits {
	const map = reader.map(
		field,
		LIMIT_FIELDS.map(({ name }) => name),
	);
	const limits: { -readonly [name in keyof SetLimits]: number } = { ...DEFAULT_LIMITS };
	if (map === undefined) return DEFAULT_LIMITS;
	for (const known of LIMIT_FIELDS) {
		const value = reader.number(map.get(known.name), known);
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
