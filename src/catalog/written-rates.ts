import { formatRatePerMillion, formatRatePerUnit, type PicoUsdPerUnit } from "../money/nano-usd.ts";
import type { RateCard, Rates } from "./model.ts";

export const RATE_NAMES = ["input", "cached_input", "output", "request", "image", "audio_second", "search"] as const;

export type RateName = (typeof RATE_NAMES)[number];

/** Rates that are written per million tokens; all others are written per unit. */
export const PER_MILLION: ReadonlySet<RateName> = new Set(["input", "cached_input", "output"]);

/** Rates with the names and units of `tollgate.yaml`. */
export type WrittenRates = Readonly<Record<RateName, string>>;

export const WRITTEN_UNITS = "input, cached_input and output in USD per million tokens, others USD each";

/** Builds rates by calling `rate` with each name as used in `tollgate.yaml` and in the table `rate_card`. */
export function buildRates(rate: (name: RateName) => PicoUsdPerUnit): Rates {
	return {
		input: rate("input"),
		cachedInput: rate("cached_input"),
		output: rate("output"),
		request: rate("request"),
		image: rate("image"),
		audioSecond: rate("audio_second"),
		search: rate("search"),
	};
}

export function readRate(rates: Rates, name: RateName): PicoUsdPerUnit {
	if (name === "cached_input") return rates.cachedInput;
	return name === "audio_second" ? rates.audioSecond : rates[name];
}

export function writtenRates(rates: Rates): WrittenRates {
	const written = (name: RateName) =>
		(PER_MILLION.has(name) ? formatRatePerMillion : formatRatePerUnit)(readRate(rates, name));
	return Object.fromEntries(RATE_NAMES.map((name) => [name, written(name)])) as WrittenRates;
}

export function chargedRates(rates: Rates): Partial<WrittenRates> {
	return Object.fromEntries(Object.entries(writtenRates(rates)).filter(([, rate]) => rate !== "0"));
}

/** The highest of these rates in the format of OpenRouter's price list: decimal US dollars per single unit. */
export function openRouterPricing(cards: readonly RateCard[]): Record<string, string> {
	const highest = (rate: (card: RateCard) => PicoUsdPerUnit) =>
		formatRatePerUnit(Math.max(...cards.map(rate)) as PicoUsdPerUnit);
	return {
		prompt: highest((card) => card.input),
		completion: highest((card) => card.output),
		input_cache_read: highest((card) => card.cachedInput),
		request: highest((card) => card.request),
		image: highest((card) => card.image),
		audio_second: highest((card) => card.audioSecond),
		search: highest((card) => card.search),
	};
}
