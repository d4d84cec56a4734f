import type { Rates } from "../../src/catalog/model.ts";
import type { PicoUsdPerUnit } from "../../src/money/nano-usd.ts";

const pico = (usdPerMillion: number) => (usdPerMillion * 1_000_000) as PicoUsdPerUnit;

/** All rates have different values, so that exchanging two rates fails a test. */
export const EVERY_RATE: Rates = {
	input: pico(1),
	cachedInput: pico(2),
	output: pico(3),
	request: pico(4),
	image: pico(5),
	audioSecond: pico(6),
	search: pico(7),
};

/** Returns an object in which every rate has this value. */
export const sameRates = <Value>(value: Value) => ({
	input: value,
	cachedInput: value,
	output: value,
	request: value,
	image: value,
	audioSecond: value,
	search: value,
});
