import type { Admitted } from "../../admission/admission.ts";
import { minUsd } from "../../money/nano-usd.ts";
import type { AnswerStream, OutputChunk } from "../../upstream/call/stream-wire.ts";
import type { ReportedUsage } from "../../upstream/usage.ts";
import type { Relay } from "./endpoint.ts";

/** Output between two records of the journal that bound what was delivered: tokens, or bytes where nobody counts. */
const PROGRESS_TOKENS = 64;
const PROGRESS_BYTES = 256;

/** What has been delivered of one stream, and how far the journal's bound of it reaches. */
export interface Delivery {
	/** Of output, in all chunks. */
	bytes: number;
	/** Chunks that carried output. */
	chunks: number;
	/** What finished streams of its replica say that this is worth; undefined if they do not, or where the upstream counts. */
	tokensLikely: number | undefined;
	/** By the upstream's count; undefined if there was none. */
	usage: ReportedUsage | undefined;
	/** Milliseconds from the request's first moment to the first chunk; null if there was none yet. */
	firstMs: number | null;
	/** Output from which on the journal's bound does not hold any more, counted as `recordedPrompt` says. */
	recordAt: number;
	/** Prompt tokens by the upstream's count when the last record was written; undefined if there was no count. */
	recordedPrompt: number | undefined;
	/** Something arrived that could not be put on record. It does not go out, and nothing after it. */
	isCut: boolean;
}

export function createDelivery(): Delivery {
	return {
		bytes: 0,
		chunks: 0,
		tokensLikely: undefined,
		usage: undefined,
		firstMs: null,
		recordAt: -1,
		recordedPrompt: undefined,
		isCut: false,
	};
}

/**
 * Counts what arrived, with the upstream's count of all so far, and has the journal bound its cost before the client
 * gets it. Throws, with nothing counted, if the journal does not take it.
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

/** Write-ahead, where the last bound does not hold any more. */
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
	const { promptTokens, completionTokens } = now;
	const bound = minUsd(hold.reserved, relay.costAt(now, recordAt));
	hold.ledger.progress(hold, {
		delivered: minUsd(now.cost, bound),
		bound,
		promptTokens: promptTokens,
		completionTokens: completionTokens,
	});
	delivery.recordAt = recordAt;
	delivery.recordedPrompt = usage?.promptTokens;
}
