import { Fault } from "../base/fault.ts";
import type { TextValues } from "../base/translate.ts";
import { TOKENS_PER_MINUTE_MAX } from "../catalog/account-limits.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { CAP_PERIODS, type CapPeriod } from "./cap-period.ts";

/** Settings of a key. An absent setting stays as it is (at creation: none); null removes it. */
export interface KeySettings {
	readonly name?: string;
	/** Most that may be spent in the key's lifetime, or per period if the cap renews. */
	readonly capNanoUsd?: NanoUsd | null;
	/** How often the cap renews; by default never. After a change, spending is counted from the time of the change. */
	readonly capPeriod?: CapPeriod;
	/** Ids of the models that may be used; empty or null: all. */
	readonly models?: readonly string[] | null;
	readonly expiresAtMs?: number | null;
	readonly requestsPerMinute?: number | null;
	readonly concurrencyMax?: number | null;
	readonly tokensPerMinute?: number | null;
	/** Project of the same account to which the key belongs; null: none. */
	readonly projectId?: string | null;
}

const NAME_CHARS_MAX = 100;
const MODELS_MAX = 200;
const MODEL_CHARS_MAX = 200;
/** Maximum characters of all model ids together, because each change writes them into the control log. */
const MODELS_CHARS_MAX = 8_000;
const RATE_MAX = 10_000_000;
/** End of the year 9999, because later years have five digits. */
const EXPIRES_AT_MS_MAX = 253_402_300_799_999;

/** Throws Fault `invalid_request`, which names the setting, if a setting is out of range. */
export function checkKeySettings(settings: KeySettings): void {
	const { name, capNanoUsd, capPeriod, models, expiresAtMs, requestsPerMinute, concurrencyMax } = settings;
	const { tokensPerMinute } = settings;
	const check = <T>(value: T | null | undefined, holds: (value: T) => boolean, ...[param, text, values]: Refusal) => {
		if (value !== null && value !== undefined && !holds(value))
			throw new Fault("invalid_request", text, { param, values: values ?? {} });
	};
	const within = (min: number, max: number) => (value: number) =>
		Number.isSafeInteger(value) && value >= min && value <= max;
	const isName = (text: string) => isLabel(text, NAME_CHARS_MAX);
	const count = NAME_CHARS_MAX;
	if (name !== undefined) check(name, isName, "name", "A name must be one line of 1 to {count} characters.", { count });
	const isAmount = within(0, Number.MAX_SAFE_INTEGER);
	check(capNanoUsd, isAmount, "cap_usd", "A cap must be a positive amount in US dollars.");
	const periods = CAP_PERIODS.join(", ");
	const isPeriod = (period: CapPeriod) => CAP_PERIODS.includes(period);
	check(capPeriod, isPeriod, "cap_period", "A cap's period must be one of {periods}.", { periods });
	const areFew = (ids: readonly string[]) => ids.length <= MODELS_MAX;
	check(models, areFew, "models", "A key can list at most {count} models.", { count: MODELS_MAX });
	const areShort = (ids: readonly string[]) => ids.join("").length <= MODELS_CHARS_MAX;
	check(models, areShort, "models", "The model ids of a key can have at most {count} characters together.", {
		count: MODELS_CHARS_MAX,
	});
	const areIds = (ids: readonly string[]) => ids.every((id) => isLabel(id, MODEL_CHARS_MAX));
	check(models, areIds, "models", "A model id must be one line of text.");
	check(expiresAtMs, within(1, EXPIRES_AT_MS_MAX), "expires_at", "An expiry must be before the year 10000.");
	const most = RATE_MAX;
	const isRate = within(1, RATE_MAX);
	check(requestsPerMinute, isRate, "requests_per_minute", "A rate limit must be 1 to {most} requests per minute.", {
		most,
	});
	check(concurrencyMax, isRate, "concurrency", "A concurrency limit must be 1 to {most} requests.", { most });
	const tokensMost = TOKENS_PER_MINUTE_MAX;
	const isTokens = within(1, tokensMost);
	check(tokensPerMinute, isTokens, "tokens_per_minute", "A token limit must be 1 to {most} tokens per minute.", {
		most: tokensMost,
	});
}

type Refusal = readonly [param: string, text: string, values?: TextValues];

/** True if the text is one line of 1 to `charsMax` characters without control characters. */
export function isLabel(text: string, charsMax: number): boolean {
	return text.length <= charsMax && /^[^\p{Cc}\p{Cs}]+$/u.test(text) && text.trim() !== "";
}
