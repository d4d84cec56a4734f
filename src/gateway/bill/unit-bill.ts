import type { Quantities } from "../../admission/price.ts";
import { priceWithin } from "../../admission/price.ts";
import type { Model } from "../../catalog/model.ts";
import { NO_COUNTS } from "../../ledger/outcome.ts";
import type { Bill } from "./bill.ts";

/**
 * The bill of an endpoint with units of its own. `counted`: the quantities come from the upstream or a safe count;
 * otherwise they are our estimate.
 */
export function unitBill(model: Model, used: Quantities, counted: boolean): Bill {
	const { rateCard } = model;
	const cost = priceWithin(rateCard, used);
	const units = used.audioSeconds + used.images + used.searches;
	return {
		...NO_COUNTS,
		promptTokens: used.promptTokens,
		cachedTokens: used.cachedTokens,
		completionTokens: used.completionTokens,
		cost,
		basis: counted ? "exact" : "estimated",
		units,
	};
}

/** An upstream's count, cut to the request's maximum; `isBelieved` if it existed and needed no cut. */
export function countedWithin(
	count: number | undefined,
	max: number,
): { readonly tokens: number | undefined; readonly isBelieved: boolean } {
	if (count === undefined) return { tokens: undefined, isBelieved: false };
	return { tokens: Math.min(count, max), isBelieved: count <= max };
}
