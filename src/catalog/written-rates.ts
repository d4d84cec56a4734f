import { formatRatePerMillion, formatRatePerUnit } from "../money/nano-usd.ts";
import type { Rates } from "./model.ts";

export const RATE_NAMES = ["input", "cached_input", "output", "request", "image", "audio_second", "search"] as const;

export type RateName = (typeof RATE_NAMES)[number];

/** Rates with the names and units of `tollgate.yaml`. */
export type WrittenRates = Readonly<Record<RateName, string>>;

export const WRITTEN_UNITS = "input, cached_input and output in USD per million tokens, others USD each";

export function writtenRates(rates: Rates): WrittenRates {
	return {
		input: formatRatePerMillion(rates.input),
		cached_input: formatRatePerMillion(rates.cachedInput),
		output: formatRatePerMillion(rates.output),
		request: formatRatePerUnit(rates.request),
		image: formatRatePerUnit(rates.image),
		audio_second: formatRatePerUnit(rates.audioSecond),
		search: formatRatePerUnit(rates.search),
	};
}

/** The rates above 0. */
export function chargedRates(rates: Rates): Partial<WrittenRates> {
	return Object.fromEntries(Object.entries(writtenRates(rates)).filter(([, rate]) => rate !== "0"));
}
