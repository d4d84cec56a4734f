import type { Admitted } from "../../admission/admission.ts";
import { minUsd } from "../../money/nano-usd.ts";
import type { AnswerStream, OutputChunk } from "../../upstream/call/stream-wire.ts";
import type { ReportedUsage } from "../../upstream/usage.ts";
import type { Relay } from "./endpoint.ts";

/** Output between two journal records that bound the delivered cost: tokens, or bytes without an upstream count. */
const PROGRESS_TOKENS = 64;
const PROGRESS_BYTES = 256;

/** The delivered part of one stream, and the reach of the journal's bound. */
export class Delivery {
	bytes = 0;
	chunks = 0;
	/** Estimate from finished streams of its replica; undefined if too few are known or the upstream counts. */
	tokensLikely: number | undefined = undefined;
	usage: ReportedUsage | undefined = undefined;
	/** Milliseconds from the start of the request to the first chunk; null before it. */
	firstMs: number | null = null;
	/** Output above which the journal's bound no longer holds: tokens, or bytes without an upstream count. */
	recordAt = -1;
	/** The upstream's prompt tokens at the last journal record; undefined without a count. */
	recordedPrompt: number | undefined = undefined;
	/** The journal refused a chunk: neither it nor any later chunk leaves. */
	isCut = false;
}

/**
 * Counts the chunks and journals a bound of their cost before the client gets them. Throws without counting if the
 * journal refuses.
 */
export function deliver<Chunk extends OutputChunk>(
	delivery: Delivery,
	admitted: Admitted,
	relay: Relay<Chunk>,
	chunks: readonly Chunk[],
	upstream: Pick<AnswerStream<Chunk>, "usage" | "tokensLikely">,
): void {
	const { bytes, chunks: count, tokensLikely } = delivery;
	const usage = upstream.usage();
	for (const { outputBytes } of chunks) {
		delivery.bytes += outputBytes;
		if (outputBytes > 0) delivery.chunks += 1;
	}
	if (usage?.completionTokens === undefined) delivery.tokensLikely = upstream.tokensLikely();
	try {
		record(delivery, admitted, relay, usage);
	} catch (error) {
		delivery.bytes = bytes;
		delivery.chunks = count;
		delivery.tokensLikely = tokensLikely;
		delivery.isCut = true;
		throw error;
	}
	delivery.usage = usage;
}

/** Writes ahead when the last bound no longer holds. */
function record<Chunk>(
	delivery: Delivery,
	{ hold }: Admitted,
	relay: Relay<Chunk>,
	usage: ReportedUsage | undefined,
): void {
	const counted = usage?.completionTokens;
	const output = counted ?? delivery.bytes;
	if (output <= delivery.recordAt && usage?.promptTokens === delivery.recordedPrompt) return;
	const recordAt = output + (counted === undefined ? PROGRESS_BYTES : PROGRESS_TOKENS);
	const now = relay.bill(usage, delivery, false);
	const { cost, promptTokens, completionTokens } = now;
	const bound = minUsd(hold.reserved, relay.costAt(now, recordAt));
	hold.ledger.progress(hold, { delivered: minUsd(cost, bound), bound, promptTokens, completionTokens });
	delivery.recordAt = recordAt;
	delivery.recordedPrompt = usage?.promptTokens;
}
