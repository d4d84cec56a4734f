import { Fault } from "../base/fault.ts";
import type { TextValues } from "../base/translate.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { CAP_PERIODS, type CapPeriod } from "./cap-period.ts";

/** Settings of a key. Absent: unchanged (at creation: none). Null: none. */
export interface KeySettings {
	readonly name?: string;
	/** Limit of its spending, in its lifetime or in each period. */
	readonly capNanoUsd?: NanoUsd | null;
	/** How often the cap renews; at creation: never. A new period counts from now on. */
	readonly capPeriod?: CapPeriod;
	/** Ids of models; empty or null: all. */
	readonly models?: readonly string[] | null;
	readonly expiresAtMs?: number | null;
	readonly requestsPerMinute?: number | null;
	readonly concurrencyMax?: number | null;
	/** Its project, of the same account; null: none. */
	readonly projectId?: string | null;
}

const NAME_CHARS_MAX = 100;
const MODELS_MAX = 200;
const MODEL_CHARS_MAX = 200;
const RATE_MAX = 10_000_000;
/** The last moment of the year 9999: later ones have no usual notation. */
const EXPIRES_AT_MS_MAX = 253_402_300_799_999;

/** Fault `invalid_request`, naming the setting, unless all given ones are in range. */
export function checkSettings(settings: KeySettings): void {
	const { name, capNanoUsd, capPeriod, models, expiresAtMs, requestsPerMinute, concurrencyMax } = settings;
	if (name !== undefined)
		check(isLabel(name, NAME_CHARS_MAX), "name", "A name is one line of 1 to {count} characters.", {
			count: NAME_CHARS_MAX,
		});
	if (isGiven(capNanoUsd))
		check(isWhole(capNanoUsd, 0, Number.MAX_SAFE_INTEGER), "cap_usd", "A cap is a positive amount of dollars.");
	if (isGiven(capPeriod))
		check(CAP_PERIODS.includes(capPeriod), "cap_period", "A cap's period is one of {periods}.", {
			periods: CAP_PERIODS.join(", "),
		});
	if (isGiven(models)) {
		check(models.length <= MODELS_MAX, "models", "A key lists at most {count} models.", { count: MODELS_MAX });
		check(
			models.every((id) => isLabel(id, MODEL_CHARS_MAX)),
			"models",
			"A model's id is one line of text.",
		);
	}
	if (isGiven(expiresAtMs))
		check(isWhole(expiresAtMs, 1, EXPIRES_AT_MS_MAX), "expires_at", "An expiry is a date before the year 10000.");
	if (isGiven(requestsPerMinute))
		check(
			isWhole(requestsPerMinute, 1, RATE_MAX),
			"requests_per_minute",
			"A rate limit is 1 to {most} requests a minute.",
			{ most: RATE_MAX },
		);
	if (isGiven(concurrencyMax))
		check(isWhole(concurrencyMax, 1, RATE_MAX), "concurrency", "A concurrency limit is 1 to {most} requests.", {
			most: RATE_MAX,
		});
}

/** One line of 1 to `charsMax` characters without control characters. */
export function isLabel(text: string, charsMax: number): boolean {
	return text.length <= charsMax && /^[^\p{Cc}\p{Cs}]+$/u.test(text) && text.trim() !== "";
}

function isGiven<T>(value: T | null | undefined): value is T {
	return value !== null && value !== undefined;
}

function isWhole(value: number, min: number, max: number): boolean {
	return Number.isSafeInteger(value) && value >= min && value <= max;
}

function check(holds: boolean, param: string, text: string, values: TextValues = {}): void {
	if (!holds) throw new Fault("invalid_request", text, { param, values });
}
