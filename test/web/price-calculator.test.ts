import { expect, test } from "bun:test";
import { NO_QUANTITIES, priceOf } from "../../src/admission/price.ts";
import type { RateCard } from "../../src/catalog/model.ts";
import { MAX_NANO_USD, type PicoUsdPerUnit } from "../../src/money/nano-usd.ts";
import { requestCost } from "../../src/web/parts/model-table.tsx";
import { createRandom } from "../support/random.ts";

test("the calculator shows the exact charge in nano-dollars for any rates and tokens", () => {
	const random = createRandom(16);
	const rate = () => random.int(0, 5_000_000) as PicoUsdPerUnit;
	// A random number of tokens: mostly small, sometimes millions.
	const tokens = () => Math.floor(random.fraction() ** 4 * 1e7);
	for (let round = 0; round < 2_000; round++) {
		const rates = { input: rate(), cachedInput: rate(), output: rate(), request: rate() };
		const card = { ...rates, image: 7, audioSecond: 7, search: 7 } as RateCard;
		const [input, cached, output] = [tokens(), tokens(), tokens()];
		const used = {
			...NO_QUANTITIES,
			promptTokens: input,
			cachedTokens: Math.min(cached, input),
			completionTokens: output,
			requests: 1,
		};
		const charged = priceOf(card, used) ?? MAX_NANO_USD;
		expect(requestCost({ rates: card }, { input, cached, output, requests: 1 })).toBe(charged);
	}
});
