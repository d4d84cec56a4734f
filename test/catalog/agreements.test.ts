/** Prices agreed with accounts: which agreement is in force at which time, its rates, and charges at these rates. */
import { expect, test } from "bun:test";
import { billLines, maxCost, priceOf } from "../../src/admission/price.ts";
import {
	type Agreement,
	agreedCard,
	createAccountPrices,
	modelAtAgreedPrice,
	partsOfCard,
	withAgreement,
} from "../../src/catalog/agreements.ts";
import type { Model, RateCard } from "../../src/catalog/model.ts";
import { buildRates, RATE_NAMES, readRate } from "../../src/catalog/rate-cards.ts";
import { costNanoUsd, type PicoUsdPerUnit } from "../../src/money/nano-usd.ts";
import { LONG } from "../support/long-form.ts";
import { createRandom, type Random } from "../support/random.ts";

const RUNS = LONG ? 20_000 : 2_000;
const pico = (rate: number) => rate as PicoUsdPerUnit;
const randomRates = (random: Random) =>
	buildRates(() => pico(random.chance(0.2) ? 0 : random.int(1, random.pick([3, 1_000, 10_000_000, 1_000_000_000]))));
const cardOf = (random: Random, model: string): RateCard => ({
	...randomRates(random),
	id: `${model}@${random.int(1, 9)}`,
	version: 1,
});
const modelOf = (random: Random, id: string) =>
	({
		id,
		rateCard: cardOf(random, id),
		...(random.chance(0.5) ? { batch: { rateCard: random.chance(0.5) ? cardOf(random, `${id}#batch`) : null } } : {}),
	}) as unknown as Model;

let made = 0;
function agreement(random: Random, fromMs: number): Agreement {
	made += 1;
	const kind = random.int(0, 2);
	const model = kind === 1 ? random.pick(["a", "b"]) : random.pick(["a", "b", null]);
	const id = `adj_${String(made).padStart(32, "0")}`;
	return {
		...{ id, model, fromMs },
		discount: kind === 0 ? random.int(1, 10_000) : null,
		rates: kind === 1 ? randomRates(random) : null,
	};
}

/** The terms in force by the rule: those of the last agreement that has begun, for the model or else for all. */
function expected(made: readonly Agreement[], model: string, nowMs: number): Agreement | undefined {
	const lastOf = (scope: string | null) => {
		let found: Agreement | undefined;
		for (const one of made) if (one.model === scope && one.fromMs <= nowMs) found = one;
		return found && (found.discount !== null || found.rates !== null) ? found : undefined;
	};
	return lastOf(model) ?? lastOf(null);
}

test("the price agreement that started last sets the price of its models", () => {
	for (let seed = 1; seed <= RUNS / 10; seed++) {
		const random = createRandom(seed);
		const models = ["a", "b", "c"].map((id) => modelOf(random, id));
		let kept: readonly Agreement[] = [];
		let all: readonly Agreement[] = [];
		let nowMs = 1_000;
		for (let step = 0; step < 20; step++) {
			if (random.chance(0.5)) {
				const added = agreement(random, random.chance(0.5) ? 0 : nowMs + random.int(1, 100));
				kept = withAgreement(kept, added, nowMs);
				// From its beginning an agreement replaces all that would begin later for its models.
				const from = Math.max(added.fromMs, nowMs);
				all = [...all.filter((one) => one.model !== added.model || one.fromMs <= from), { ...added, fromMs: from }];
			}
			const prices = createAccountPrices(kept);
			for (const model of models) expect(prices.of(model, nowMs)).toBe(prices.of(model, nowMs));
			const seen = Array.from({ length: 4 }, () => nowMs + random.int(0, 150));
			for (const atMs of seen)
				for (const model of models) {
					const terms = expected(all, model.id, atMs);
					const priced = prices.of(model, atMs);
					expect(priced).toEqual(modelAtAgreedPrice(model, kept, atMs));
					expect(priced.rateCard.id).toBe(model.rateCard.id + (terms === undefined ? "" : `#${terms.id}`));
					if (terms === undefined) expect(priced).toBe(model);
					else if (model.batch?.rateCard)
						expect(priced.batch?.rateCard?.id).toBe(`${model.batch.rateCard.id}#${terms.id}`);
				}
			nowMs += random.int(0, 60);
		}
	}
});

test("a charge is exactly the agreed price, and at most the reserved amount", () => {
	const random = createRandom(1_971);
	for (let run = 0; run < RUNS; run++) {
		const list = cardOf(random, "m");
		const terms = agreement(random, 0);
		const card = agreedCard(list, terms);
		expect(partsOfCard(card.id)).toEqual([list.id, terms.id]);
		expect(partsOfCard(list.id)).toEqual([list.id, null]);
		for (const name of RATE_NAMES) {
			const exact = (BigInt(readRate(list, name)) * BigInt(10_000 - (terms.discount ?? 0))) / 10_000n;
			const rate = BigInt(readRate(card, name));
			if (terms.rates !== null) expect(rate).toBe(BigInt(readRate(terms.rates, name)));
			// At most a pico-dollar above the exact rate; 0 only if the list rate is 0 or the discount is 100 percent.
			else {
				expect(rate === exact || rate === exact + 1n).toBe(true);
				expect(rate * 10_000n).toBeGreaterThanOrEqual(
					BigInt(readRate(list, name)) * BigInt(10_000 - (terms.discount ?? 0)),
				);
			}
		}
		const prompt = random.int(0, 200_000);
		const used = {
			...{ promptTokens: prompt, cachedTokens: random.int(0, prompt), completionTokens: random.int(0, 9_000) },
			...{ requests: 1, images: random.int(0, 3), audioSeconds: random.int(0, 99), searches: random.int(0, 3) },
		};
		const sum = billLines(card, used).reduce((total, { units, rate }) => total + BigInt(units) * BigInt(rate), 0n);
		const charge = priceOf(card, used);
		expect(BigInt(charge as number)).toBe((sum + 999n) / 1_000n);
		expect(charge).toBe(costNanoUsd(billLines(card, used)));
		const bound = maxCost(card, { ...used, promptTokens: prompt + 5, completionTokens: used.completionTokens + 5 });
		expect(bound).toBeGreaterThanOrEqual(charge as number);
	}
});
