import type { PicoUsdPerUnit } from "../money/nano-usd.ts";
import type { Model, RateCard, Rates } from "./model.ts";
import { buildRates, readRate } from "./rate-cards.ts";

/** Prices agreed with an account. Without `discount` and `rates`, the list price applies again. */
export interface PriceTerms {
	/** Id of the model; null: all models. An agreement for one model overrides one for all models. */
	readonly model: string | null;
	/** Discount from the list price in hundredths of a percent, also for batch lines: 1 to 10,000. */
	readonly discount: number | null;
	/** Agreed rates of one model, also for its batch lines. */
	readonly rates: Rates | null;
	/** Wall-clock time at which the terms begin. 0: as soon as an instance knows them, whatever its clock says. */
	readonly fromMs: number;
}

export interface Agreement extends PriceTerms {
	/** Id of the adjustment that made it; part of the ids of its rate cards. */
	readonly id: string;
}

export type AccountPrices = ReturnType<typeof createAccountPrices>;

/** Maximum number of an account's agreements that are in force or planned. */
export const AGREEMENTS_MAX = 50;
export const DISCOUNT_WHOLE = 10_000;

const CARD_PART = "#adj_";

/**
 * Rate card of an agreement, with the id `<list card>#<agreement>`. Neither part ever changes, so the id names one
 * version of prices, although no row has it. Discounted rates are rounded up to whole pico-dollars only here.
 */
export function agreedCard(list: RateCard, { id, discount, rates }: Agreement): RateCard {
	const whole = BigInt(DISCOUNT_WHOLE);
	const paid = whole - BigInt(discount ?? 0);
	const discounted = (rate: number) => Number((BigInt(rate) * paid + whole - 1n) / whole) as PicoUsdPerUnit;
	const agreed = rates ?? buildRates((name) => discounted(readRate(list, name)));
	return Object.freeze({ ...agreed, id: `${list.id}#${id}`, version: list.version });
}

/** Splits a card's id into the ids of the list card and of the agreement; null without an agreement. */
export function partsOfCard(id: string): readonly [list: string, agreement: string | null] {
	const at = id.lastIndexOf(CARD_PART);
	return at < 0 ? [id, null] : [id.slice(0, at), id.slice(at + 1)];
}

const isListPrice = ({ discount, rates }: Agreement): boolean => discount === null && rates === null;

function newestBegun(list: readonly Agreement[], model: string | null, nowMs: number): Agreement | undefined {
	let found: Agreement | undefined;
	for (const one of list)
		if (one.model === model && one.fromMs <= nowMs && (found?.fromMs ?? -1) < one.fromMs) found = one;
	return found;
}

/** The model at the price that these agreements set for it at `nowMs`. */
export function modelAtAgreedPrice<M extends Pick<Model, "id" | "rateCard" | "batch">>(
	model: M,
	list: readonly Agreement[],
	nowMs: number,
): M {
	const own = newestBegun(list, model.id, nowMs);
	const agreement = own === undefined || isListPrice(own) ? newestBegun(list, null, nowMs) : own;
	if (agreement === undefined || isListPrice(agreement)) return model;
	const priced = { ...model, rateCard: agreedCard(model.rateCard, agreement) };
	const lines = model.batch?.rateCard;
	return Object.freeze(lines ? { ...priced, batch: { rateCard: agreedCard(lines, agreement) } } : priced);
}

/** Adds an agreement, which replaces those that would begin later for the same models. Drops those that are over. */
export function withAgreement(list: readonly Agreement[], added: Agreement, nowMs: number): readonly Agreement[] {
	const all = [...list.filter(({ model, fromMs }) => model !== added.model || fromMs < added.fromMs), added];
	return all.filter((one) => one.fromMs > nowMs || (newestBegun(all, one.model, nowMs) === one && !isListPrice(one)));
}

/** Computes each model's price once, until another agreement begins. Keeps one object per used model. */
export function createAccountPrices(list: readonly Agreement[]) {
	let priced = new WeakMap<Model, Model>();
	let [sinceMs, untilMs] = [Number.POSITIVE_INFINITY, 0];
	return {
		/** The model at the account's current price. A reservation keeps the price at which it was admitted. */
		of(model: Model, nowMs: number): Model {
			if (nowMs < sinceMs || nowMs >= untilMs) {
				const moments = list.map(({ fromMs }) => fromMs);
				priced = new WeakMap();
				sinceMs = Math.max(0, ...moments.filter((fromMs) => fromMs <= nowMs));
				untilMs = Math.min(Number.POSITIVE_INFINITY, ...moments.filter((fromMs) => fromMs > nowMs));
			}
			const known = priced.get(model);
			if (known !== undefined) return known;
			const made = modelAtAgreedPrice(model, list, nowMs);
			priced.set(model, made);
			return made;
		},
	};
}
