import type { PicoUsdPerUnit } from "../money/nano-usd.ts";
import type { Model, RateCard, Rates } from "./model.ts";
import { buildRates, readRate } from "./rate-cards.ts";

/** Prices of an account. Without `discount` and `rates`: the list price again. */
export interface PriceTerms {
	/** Id of the model; null: every model. An agreement for one model precedes one for every model. */
	readonly model: string | null;
	/** Hundredths of a percent off the list price, also of batch lines: 1 to 10,000. */
	readonly discount: number | null;
	/** Own rates of one model, also of its batch lines. */
	readonly rates: Rates | null;
	/** 0: in force as soon as an instance knows it, whatever its clock says. */
	readonly fromMs: number;
}

/** Terms from a moment on. */
export interface Agreement extends PriceTerms {
	/** Id of the adjustment that made it; part of the ids of its rate cards. */
	readonly id: string;
}

export type AccountPrices = ReturnType<typeof createAccountPrices>;

/** Most agreements of an account that are in force or planned. */
export const AGREEMENTS_MAX = 50;
export const DISCOUNT_WHOLE = 10_000;

const CARD_PART = "#adj_";

/**
 * Rate card of an agreement: `<list card>#<agreement>`. Neither part ever changes, so the id names one version of
 * prices, although no row has it. A discounted rate is rounded up to whole pico-dollars, once, here.
 */
export function agreedCard(list: RateCard, { id, discount, rates }: Agreement): RateCard {
	const whole = BigInt(DISCOUNT_WHOLE);
	const paid = whole - BigInt(discount ?? 0);
	const discounted = (rate: number) => Number((BigInt(rate) * paid + whole - 1n) / whole) as PicoUsdPerUnit;
	const agreed = rates ?? buildRates((name) => discounted(readRate(list, name)));
	return Object.freeze({ ...agreed, id: `${list.id}#${id}`, version: list.version });
}

/** Ids of the list card and of the agreement; of a list card without an agreement: itself and null. */
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

/** The model at the price that these agreements give it now. */
export function atAgreedPrice<M extends Pick<Model, "id" | "rateCard" | "batch">>(
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

/** The list with `added`, which replaces what would begin later for the same models. Drops what is over. */
export function withAgreement(list: readonly Agreement[], added: Agreement, nowMs: number): readonly Agreement[] {
	const all = [...list.filter(({ model, fromMs }) => model !== added.model || fromMs < added.fromMs), added];
	return all.filter((one) => one.fromMs > nowMs || (newestBegun(all, one.model, nowMs) === one && !isListPrice(one)));
}

/** Computes each model's price once between two beginnings of agreements; keeps one object per used model. */
export function createAccountPrices(list: readonly Agreement[]) {
	let priced = new WeakMap<Model, Model>();
	let [sinceMs, untilMs] = [Number.POSITIVE_INFINITY, 0];
	return {
		/** The model at the account's present price. A reservation keeps the one with which it was admitted. */
		of(model: Model, nowMs: number): Model {
			if (nowMs < sinceMs || nowMs >= untilMs) {
				const moments = list.map(({ fromMs }) => fromMs);
				priced = new WeakMap();
				sinceMs = Math.max(0, ...moments.filter((fromMs) => fromMs <= nowMs));
				untilMs = Math.min(Number.POSITIVE_INFINITY, ...moments.filter((fromMs) => fromMs > nowMs));
			}
			const known = priced.get(model);
			if (known !== undefined) return known;
			const made = atAgreedPrice(model, list, nowMs);
			priced.set(model, made);
			return made;
		},
	};
}
