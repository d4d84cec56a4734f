import type { AdmissionRequest } from "../admission/admission.ts";
import { priceOfTokens } from "../admission/price.ts";
import type { PromptMeasure } from "../admission/prompt-bound.ts";
import type { Fault } from "../base/fault.ts";
import type { Language } from "../base/language.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import type { ReportedUsage } from "../upstream/usage.ts";
import { type Bill, billOf, type OutputSize } from "./bill/bill.ts";
import { usageRecord } from "./bill/usage-record.ts";
import type { Exchange } from "./serve/context.ts";
import type { Relay } from "./serve/endpoint.ts";
import type { ChatEvents } from "./stream-events.ts";

/** Writes and bills a stream that is priced in tokens. */
export function tokenRelay<Chunk>(
	{ admitted }: Exchange,
	measure: PromptMeasure,
	events: ChatEvents<Chunk>,
): Relay<Chunk> {
	return new TokenRelay(admitted.request, measure, events);
}

/** A class, since there is one per open stream. */
class TokenRelay<Chunk> implements Relay<Chunk> {
	readonly #request: AdmissionRequest;
	readonly #measure: PromptMeasure;
	readonly #events: ChatEvents<Chunk>;

	constructor(request: AdmissionRequest, measure: PromptMeasure, events: ChatEvents<Chunk>) {
		this.#request = request;
		this.#measure = measure;
		this.#events = events;
	}

	chunks(chunks: readonly Chunk[]): string {
		return this.#events.chunks(chunks);
	}

	end(bill: Bill): string {
		return this.#events.end(usageRecord(bill));
	}

	fail(fault: Fault, bill: Bill, language: Language | undefined): string {
		return this.#events.fail(fault, usageRecord(bill), language);
	}

	bill(usage: ReportedUsage | undefined, output: OutputSize): Bill {
		const { bytes, chunks, tokensLikely } = output;
		return billOf(this.#request, this.#measure, usage, bytes, chunks, tokensLikely);
	}

	/** Every token has at least one byte, so bytes bound uncounted tokens. */
	costAt(now: Bill, output: number): NanoUsd {
		return priceOfTokens(this.#request.model.rateCard, now.promptTokens, now.cachedTokens, output);
	}
}
