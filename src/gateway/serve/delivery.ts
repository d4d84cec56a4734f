import { minUsd } from "../../money/nano-usd.ts";
import type { ReportedUsage } from "../../upstream/usage.ts";
import type { Exchange } from "./context.ts";
import type { OutputChunk, Relay } from "./endpoint.ts";

/** Output between two records of the journal that bound what was delivered: tokens, or bytes where nobody counts. */
const PROGRESS_TOKENS = 64;
const PROGRESS_BYTES = 256;

/** What has been delivered of one stream, and how far the journal's bound of it reaches. */
export interface Delivery {
	/** Of output, in all chunks. */
	bytes: number;
	/** Chunks that carried output. */
	chunks: number;
	/** Milliseconds from the request's first moment to the first chunk; null if there was none yet. */
	firstMs: number | null;
	/** Output from which on the journal's bound does not hold any more, counted as `recordedPrompt` says. */
	recordAt: number;
	/** Prompt tokens by the upstream's count when the last record was written; undefined if there was no count. */
	recordedPrompt: number | undefined;
}

export function createDelivery(): Delivery {
	return { bytes: 0, chunks: 0, firstMs: null, recordAt: -1, recordedPrompt: undefined };
}

export function countChunks(delivery: Delivery, chunks: readonly OutputChunk[]): void {
	for (const { outputBytes } of chunks) {
		delivery.bytes += outputBytes;
		if (outputBytes > 0) delivery.chunks += 1;
	}
}

/** Write-ahead: the journal bounds the cost of what was counted before the client gets it. */
export function recordDelivery(
	{ admitted: { hold } }: Exchange,
	relay: Pick<Relay<never>, "bill" | "costAt">,
	delivery: Delivery,
	usage: ReportedUsage | undefined,
): void {
	const counted = usage?.completionTokens;
	const output = counted ?? delivery.bytes;
	if (output <= delivery.recordAt && usage?.promptTokens === delivery.recordedPrompt) return;
	delivery.recordAt = output + (counted === undefined ? PROGRESS_BYTES : PROGRESS_TOKENS);
	delivery.recordedPrompt = usage?.promptTokens;
	const now = relay.bill(usage, delivery, false);
	const { promptTokens, completionTokens } = now.usage;
	const bound = minUsd(hold.reserved, relay.costAt(now, delivery.recordAt));
	hold.ledger.progress(hold, {
		delivered: minUsd(now.cost, bound),
		bound,
		prompt: promptTokens,
		completion: completionTokens,
	});
}
