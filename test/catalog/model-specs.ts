import type { ModelSpec, Rates } from "../../src/catalog/model.ts";
import type { PicoUsdPerUnit } from "../../src/money/nano-usd.ts";
import { sameRates } from "../support/every-rate.ts";
import { modelOver } from "../support/upstream-catalog.ts";
import { UPSTREAM_SPEC } from "../support/upstream-set.ts";

const pico = (value: number) => value as PicoUsdPerUnit;

export function ratesOf(input: number): Rates {
	return { ...sameRates(pico(0)), input: pico(input), cachedInput: pico(input), output: pico(input * 2) };
}

export function chatSpec(id: string, input = 230_000): ModelSpec {
	const {
		rateCard: _,
		createdS: __,
		batch: ___,
		...spec
	} = modelOver([{ ...UPSTREAM_SPEC, model: id }], { id, parameters: new Set() });
	return { ...spec, rates: ratesOf(input) };
}
