import type { PromptMeasure } from "../admission/prompt-bound.ts";
import { billOf, boundsOf, costOf } from "./bill/bill.ts";
import { usageRecord } from "./bill/usage-record.ts";
import type { Exchange } from "./serve/context.ts";
import type { Relay } from "./serve/endpoint.ts";
import type { ChatEvents } from "./stream-events.ts";

/** The writing and the billing of a streamed answer that is priced in tokens. */
export function tokenRelay<Chunk>(
	{ model, admitted }: Exchange,
	measure: PromptMeasure,
	events: ChatEvents<Chunk>,
): Relay<Chunk> {
	const bounds = boundsOf(admitted.request);
	return {
		chunks: events.chunks,
		end: (bill) => events.end(usageRecord(bill)),
		fail: (fault, bill) => events.fail(fault, usageRecord(bill)),
		bill: (usage, output) => billOf(model, measure, usage, output, bounds),
		// Every token stands for at least one byte, so bytes bound what nobody counts.
		costAt: (now, output) => costOf(model, { ...now.usage, completionTokens: output }),
	};
}
