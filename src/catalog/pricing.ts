import { formatRatePerUnit, type PicoUsdPerUnit } from "../money/nano-usd.ts";
import type { RateCard } from "./model.ts";

/** The highest of these rates in a public price list's form: decimal strings, US dollars per single unit. */
export function pricingOf(cards: readonly RateCard[]): Record<string, string> {
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
