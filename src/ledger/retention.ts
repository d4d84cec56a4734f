import type { EnvironmentReader } from "../base/environment-reader.ts";

/** For how many days rows are kept after they have become history; 0 for ever. README.md says what each bound is for. */
export interface Retention {
	/** Settled requests; their sums by the hour stay. */
	readonly usageDays: number;
}

const DAYS_MAX = 36_500;
/**
 * A journal may come back as late as that and still be charged, and a month can be looked through request by request when
 * it is over.
 */
const USAGE_DAYS_MIN = 35;

export function readRetention(read: EnvironmentReader, note: (problem: string) => void): Retention {
	const atLeast = (min: number, name: string, days: number): number => {
		if (days > 0 && days < min) note(`${name} must be ${min} days or more, or 0 for ever; got ${days}`);
		return days;
	};
	const usageDays = read.integer("RETENTION_USAGE_DAYS", 0, 0, DAYS_MAX);
	return Object.freeze({ usageDays: atLeast(USAGE_DAYS_MIN, "RETENTION_USAGE_DAYS", usageDays) });
}
