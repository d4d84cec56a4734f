import { Fault } from "../base/fault.ts";
import { isoOrNull, parseIsoMs } from "../base/iso-date.ts";
import {
	AGREEMENTS_MAX,
	type Agreement,
	agreedCard,
	DISCOUNT_WHOLE,
	type PriceTerms,
	partsOfCard,
	withAgreement,
} from "../catalog/agreements.ts";
import type { RateCard, Rates } from "../catalog/model.ts";
import {
	buildRates,
	nonZeroRates,
	parseRateCard,
	RATE_NAMES,
	RATES_PER_MILLION,
	type RateCardColumns,
	readRate,
	writtenRates,
} from "../catalog/rate-cards.ts";
import { onlyRow } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import { formatDecimal, parseDecimal } from "../money/decimal.ts";
import { type PicoUsdPerUnit, parseRatePerMillion, parseRatePerUnit } from "../money/nano-usd.ts";
import { statementsIn, type Transaction } from "./stripe-books.ts";

/** Terms as people write them: a discount in percent, or own rates of one model, or neither for the list price. */
export interface WrittenTerms {
	readonly model: string | null;
	readonly discount: string | null;
	readonly rates: Readonly<Record<string, string>> | null;
	/** ISO 8601; null: at once. */
	readonly from: string | null;
}

/** Checked terms, and their largest difference to the list price in hundredths of a percent. */
export interface AskedPrice {
	readonly terms: PriceTerms;
	readonly distance: number;
}

/** Fault invalid_request, naming the field. */
export async function checkTerms(statements: Statements, written: WrittenTerms, nowMs: number): Promise<AskedPrice> {
	const { model, rates, discount: percent, from } = written;
	if (rates !== null && (percent !== null || model === null))
		throw refusal("rates", "Own rates are for one model, and without a discount.");
	const [row] = await statements<RateCardColumns>`
		select * from rate_card where model = ${model}::text and position('#' in model) = 0 order by version desc limit 1`;
	if (model !== null && row === undefined)
		throw refusal("model", "There is no model with this id. An alias or a route cannot have prices of its own.");
	const discount = percent === null ? null : (parseDecimal(percent, 2) ?? 0);
	if (discount !== null && (discount < 1 || discount > DISCOUNT_WHOLE))
		throw refusal("discount", "A discount is above 0 and at most 100 percent, with at most two decimals.");
	const fromMs = from === null ? 0 : (parseIsoMs(from) ?? 0);
	if (from !== null && fromMs <= nowMs)
		throw refusal("from", "Prices begin in the future, such as 2027-01-31T12:00:00Z, or at once without `from`.");
	if (rates === null || row === undefined)
		return { terms: { model, discount, rates: null, fromMs }, distance: discount ?? 0 };
	const list = parseRateCard(row);
	const own = ownRates(rates, list);
	const distances = RATE_NAMES.map((name) => {
		const [rate, listed] = [readRate(own, name), readRate(list, name)];
		return rate === listed ? 0 : (Math.abs(rate - listed) / listed) * DISCOUNT_WHOLE;
	});
	return { terms: { model, discount, rates: own, fromMs }, distance: Math.max(...distances) };
}

const refusal = (param: keyof WrittenTerms, text: string) => new Fault("invalid_request", text, { param });

/** Own rates name each rate that the list charges, so that none is free by mistake. Others are 0 if absent. */
function ownRates(given: Readonly<Record<string, string>>, list: Rates): Rates {
	const isUnknown = Object.keys(given).some((name) => !RATE_NAMES.some((known) => known === name));
	const rates = buildRates((name) => {
		const text = given[name] ?? (readRate(list, name) === 0 ? "0" : "");
		return (
			(RATES_PER_MILLION.has(name) ? parseRatePerMillion : parseRatePerUnit)(text) ?? (Number.NaN as PicoUsdPerUnit)
		);
	});
	if (isUnknown || RATE_NAMES.some((name) => Number.isNaN(readRate(rates, name))))
		throw new Fault(
			"invalid_request",
			"Own rates are decimal strings in US dollars for {names}: tokens per million, others each.",
			{ param: "rates", values: { names: Object.keys(nonZeroRates(list)).join(", ") } },
		);
	return rates;
}

/**
 * Adds the agreement to its account, and to the control log at the commit. A beginning that has passed means now. Fault
 * conflict if the account has too many.
 */
export async function applyAgreement(tx: Transaction, accountId: string, asked: Agreement): Promise<void> {
	const account = onlyRow(
		await statementsIn(tx)<{ agreements: readonly Agreement[]; now: string }>`
			select agreements, extract(epoch from clock_timestamp()) * 1000 as now from account where id = ${accountId} for update`,
	);
	const nowMs = Number(account.now);
	// 0: instances with a slow clock must not wait for a moment that has passed here.
	const added = { ...asked, fromMs: asked.fromMs > nowMs ? asked.fromMs : 0 };
	const agreements = withAgreement(account.agreements, added, nowMs);
	if (agreements.length > AGREEMENTS_MAX)
		throw new Fault("conflict", "An account has at most {count} price agreements in force or planned.", {
			values: { count: AGREEMENTS_MAX },
		});
	await statementsIn(tx)`
		with a as (
			update account set agreements = ${JSON.stringify(agreements)}::text::jsonb where id = ${accountId}
			returning id, account_fields(account) as fields
		)
		select control_append('account', a.id, a.fields) from a`;
}

/** The rate card with this id, of an agreement too; undefined if it is not stored. */
export async function findRateCard(statements: Statements, id: string): Promise<RateCard | undefined> {
	const [list, agreement] = partsOfCard(id);
	const [row] = await statements<RateCardColumns & { terms: PriceTerms | null }>`
		select c.*, (select a.terms from credit_adjustment a where a.id = ${agreement}::text) as terms
		from rate_card c where c.id = ${list}`;
	if (row === undefined || agreement === null) return row && parseRateCard(row);
	return row.terms === null ? undefined : agreedCard(parseRateCard(row), { ...row.terms, id: agreement });
}

export function writtenTerms({ model, discount, rates, fromMs }: PriceTerms): WrittenTerms {
	return {
		model,
		discount: discount === null ? null : formatDecimal(discount, 2, 0),
		rates: rates === null ? null : writtenRates(rates),
		from: isoOrNull(fromMs === 0 ? null : fromMs),
	};
}
