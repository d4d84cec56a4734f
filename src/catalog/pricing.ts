import { formatRatePerUnit, type PicoUsdPerUnit } from "../money/nano-usd.ts";
import type { RateCard } from "./model.ts";

/** The highest of these rates, as a public price list has them: decimal strings, US dollars per single unit. */
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
