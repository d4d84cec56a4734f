import type { Admitted } from "../../admission/admission.ts";
import { minUsd } from "../../money/nano-usd.ts";
import type { AnswerStream, OutputChunk } from "../../upstream/call/stream-wire.ts";
import type { ReportedUsage } from "../../upstream/usage.ts";
import type { Relay } from "./endpoint.ts";

/** Output between two journal records: in tokens, or in bytes if the upstream server counts no tokens. */
const PROGRESS_TOKENS = 64;
const PROGRESS_BYTES = 256;

/** Counts of the stream's delivered output, and the output that the last journal record covers. */
export class DeliveredOutput {
	bytes = 0;
	chunks = 0;
	/** Tokens estimated from the replica's finished streams; undefined if too few, or if the server counts tokens. */
	tokensLikely: number | undefined = undefined;
	isBroken = false;
	usage: ReportedUsage | undefined = undefined;
	/** Milliseconds from the request's start to the first chunk; null before the first chunk. */
	firstMs: number | null = null;
	/** Output above which the next journal record is needed, in tokens or bytes (see PROGRESS_TOKENS). */
	recordAt = -1;
	/** Prompt tokens that the upstream server had reported at the last journal record; undefined if none. */
	recordedPrompt: number | undefined = undefined;
	/** True once the journal refused a chunk. Neither this chunk nor later chunks are sent to the client. */
	isCut = false;
}

/**
 * Counts chunks before they are sent, and records an upper bound of their cost in the journal. Throws without counting
 * them if the journal refuses the record.
 */
export function recordDelivery<Chunk extends OutputChunk>(
	delivery: DeliveredOutput,
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

/** Records the next upper bound in the journal if the last recorded bound no longer covers the output. */
function record<Chunk>(
	delivery: DeliveredOutput,
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
