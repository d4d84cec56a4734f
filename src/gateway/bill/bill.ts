import type { AdmissionRequest, Admitted } from "../../admission/admission.ts";
import { cappedPriceOf, priceOfTokens, type Quantities } from "../../admission/price.ts";
import { completionTokensEstimate, type PromptMeasure, promptTokensEstimate } from "../../admission/prompt-bound.ts";
import type { Model } from "../../catalog/model.ts";
import type { RequestEnding, SettledEvent, UsageBasis, UsageCounts } from "../../ledger/event.ts";
import { freeCredit } from "../../ledger/ledger.ts";
import { NO_USAGE, type Outcome } from "../../ledger/outcome.ts";
import { jsonUsd, type NanoUsd, subUsd, ZERO_USD } from "../../money/nano-usd.ts";
import { UpstreamFailure } from "../../upstream/call/failure.ts";
import type { ReportedUsage } from "../../upstream/usage.ts";
import { CLIENT_LEFT_STATUS, faultStatus, toFault } from "../error-body.ts";
import type { ServeDeps, ServedRequest } from "../serve/context.ts";

/** Upper limit of a learnt token estimate, as a multiple of the estimate from the output's size. */
const LEARNT_FACTOR_MAX = 2;

export interface Bill extends UsageCounts {
	readonly cost: NanoUsd;
	readonly basis: UsageBasis;
}

/** Size of generated output. If the model server reports no token count, the estimate is derived from this size. */
export interface OutputSize {
	readonly bytes: number;
	/** Number of stream events with output; 0 if the answer was not streamed. */
	readonly chunks: number;
	/** Tokens estimated from finished streams of the same replica; undefined if the replica has finished too few. */
	readonly tokensLikely?: number | undefined;
	/** True if the server broke off the stream. The token estimate is then at most one token per event. */
	readonly isBroken?: boolean;
}

/** Bill of a request that delivered nothing: no charge. */
export const NO_CHARGE: Bill = { ...NO_USAGE, cost: ZERO_USD, basis: "exact" };

/**
 * Prices the token counts that the model server reported. A missing count is estimated from the output's size, at most
 * up to the reservation; a count above the context length is reduced to it. Such bills, and those of contradictory
 * usage records, are marked as estimates. A count above the output limit is charged as reported.
 */
export function priceTokens(
	{ model, upperBound, choices }: Pick<AdmissionRequest, "model" | "upperBound" | "choices">,
	measure: PromptMeasure,
	reported: ReportedUsage | undefined,
	bytes: number,
	chunks: number,
	tokensLikely?: number,
): Bill {
	const prompt = reported?.promptTokens ?? promptTokensEstimate(measure, model);
	// Some servers report zero tokens although they sent output, so a zero is ignored if there was output.
	const counted = bytes > 0 ? reported?.completionTokens || undefined : reported?.completionTokens;
	const completion = counted ?? Math.min(likelyTokens(bytes, chunks, tokensLikely), upperBound.completionTokens);
	const promptTokens = Math.min(prompt, model.contextLength * (measure.prompts ?? 1));
	const completionTokens = Math.min(completion, model.contextLength * choices);
	const cachedTokens = Math.min(reported?.cachedTokens ?? 0, promptTokens);
	const exact =
		reported?.promptTokens === promptTokens &&
		reported.completionTokens === completionTokens &&
		reported.contradicts === undefined;
	return {
		promptTokens,
		completionTokens,
		cachedTokens,
		reasoningTokens: Math.min(reported?.reasoningTokens ?? 0, completionTokens),
		units: 0,
		cost: priceOfTokens(model.rateCard, promptTokens, cachedTokens, completionTokens),
		basis: exact ? "exact" : "estimated",
	};
}

/** The estimate learnt from the replica's streams, at most one token per byte and twice the estimate from the size. */
function likelyTokens(bytes: number, chunks: number, tokensLikely: number | undefined): number {
	const bySize = completionTokensEstimate(bytes, chunks);
	return tokensLikely === undefined ? bySize : Math.min(tokensLikely, LEARNT_FACTOR_MAX * bySize, bytes);
}

/** Highest count that a 32-bit column holds. Postgres would refuse a higher count, and with it every other write. */
const COUNT_MAX = 2 ** 31 - 1;

export interface OutcomeDetails {
	readonly ending: RequestEnding;
	readonly status: number;
	readonly replica: string | undefined;
	/** Milliseconds from admission to the first token; null if there was none. */
	readonly firstMs: number | null;
	readonly totalMs: number;
}

export const createOutcome = (bill: Bill, facts: OutcomeDetails): Outcome => ({
	costNanoUsd: bill.cost,
	basis: bill.basis,
	ending: facts.ending,
	status: facts.ending === "client_left" ? CLIENT_LEFT_STATUS : facts.status,
	promptTokens: Math.min(bill.promptTokens, COUNT_MAX),
	cachedTokens: Math.min(bill.cachedTokens, COUNT_MAX),
	completionTokens: Math.min(bill.completionTokens, COUNT_MAX),
	reasoningTokens: Math.min(bill.reasoningTokens, COUNT_MAX),
	units: Math.min(bill.units, COUNT_MAX),
	replica: facts.replica ?? null,
	first: facts.firstMs === null ? null : wholeMicros(facts.firstMs),
	ms: wholeMicros(facts.totalMs),
});

/** Rounds milliseconds to microseconds, because more digits would only lengthen the stored record. */
const wholeMicros = (ms: number): number => Math.round(ms * 1_000) / 1_000;

/** The bill with the amount that the ledger charged, so that the client sees exactly this amount. */
export function settledBill(event: SettledEvent): Bill {
	const { promptTokens, completionTokens, cachedTokens, reasoningTokens, units, basis, charged: cost } = event;
	return { promptTokens, completionTokens, cachedTokens, reasoningTokens, units, basis, cost };
}

/** Settles an admitted request that failed, without a charge. Does nothing if the request is already settled. */
export function settleFailedRequest(deps: ServeDeps, { context, admitted }: ServedRequest, error: unknown): void {
	if (admitted.hold.state !== "held") return;
	const totalMs = deps.clock.monotonicMs() - context.startedMs;
	const [ending, status] = [endingForError(error), faultStatus(toFault(error))];
	const facts = { ending, status, replica: undefined, firstMs: null, totalMs };
	deps.admission.settle(admitted, createOutcome(NO_CHARGE, facts));
}

export function endingForError(error: unknown): RequestEnding {
	if (!(error instanceof UpstreamFailure)) return "upstream_failed";
	if (error.kind === "died") return "upstream_died";
	if (error.kind === "timeout") return "upstream_silent";
	if (error.kind === "stopping") return "shutdown";
	return error.kind === "aborted" ? "client_left" : "upstream_failed";
}

/**
 * Draws credit for a cost above the reservation; the settlement writes off what the account lacks. Returns undefined if
 * this instance already has enough credit, which is the usual case.
 */
export function coverExcess({ hold }: Admitted, cost: NanoUsd): Promise<void> | undefined {
	if (cost <= hold.reserved) return undefined;
	const excess = subUsd(cost, hold.reserved);
	if (excess <= freeCredit(hold)) return undefined;
	return draw(hold, excess);
}

async function draw({ ledger, admitted }: Admitted["hold"], excess: NanoUsd): Promise<void> {
	try {
		const shortage = await ledger.draw(admitted, excess);
		if (shortage !== null && shortage.availableNanoUsd > 0) await ledger.draw(admitted, shortage.availableNanoUsd);
	} catch {
		// If Postgres is unreachable, the response is sent anyway, and the settlement writes the excess off.
	}
}

export type UsageRecord = ReturnType<typeof usageRecord>;

/** The charged usage in OpenAI's format, with the charge added as `cost`. */
export function usageRecord(bill: Bill) {
	return {
		prompt_tokens: bill.promptTokens,
		completion_tokens: bill.completionTokens,
		total_tokens: bill.promptTokens + bill.completionTokens,
		prompt_tokens_details: { cached_tokens: bill.cachedTokens },
		completion_tokens_details: { reasoning_tokens: bill.reasoningTokens },
		/** OpenRouter's field for the charged amount, as a JSON number. */
		cost: jsonUsd(bill.cost),
		basis: bill.basis,
	};
}

/** Bill of an endpoint that charges images, searches or audio. If `counted` is false, it is marked as an estimate. */
export function unitBill({ rateCard }: Model, used: Quantities, counted: boolean): Bill {
	const cost = cappedPriceOf(rateCard, used);
	const units = used.audioSeconds + used.images + used.searches;
	return {
		...NO_USAGE,
		promptTokens: used.promptTokens,
		cachedTokens: used.cachedTokens,
		completionTokens: used.completionTokens,
		cost,
		basis: counted ? "exact" : "estimated",
		units,
	};
}

/**
 * The token count that an upstream reported, reduced to the request's maximum; undefined without a count. `isBelieved`
 * is false if the count exceeded the maximum or the usage record contradicts itself.
 */
export function limitedCount(
	usage: ReportedUsage | undefined,
	field: "promptTokens" | "completionTokens",
	max: number,
) {
	const count = usage?.[field];
	if (count === undefined) return { tokens: undefined, isBelieved: false };
	return { tokens: Math.min(count, max), isBelieved: count <= max && usage?.contradicts === undefined };
}

/** Prompt tokens of an endpoint that charges other units than tokens: the upstream's count, or `estimate`. */
export function limitedPromptUsage(usage: ReportedUsage | undefined, max: number, estimate: number) {
	const { tokens, isBelieved } = limitedCount(usage, "promptTokens", max);
	const cachedTokens = Math.min(usage?.cachedTokens ?? 0, tokens ?? 0);
	return { tokens: { promptTokens: tokens ?? estimate, cachedTokens }, isBelieved };
}
