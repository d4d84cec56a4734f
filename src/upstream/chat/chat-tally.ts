import { type ReportedUsage, readUsage, sumOf, type UsageStyle } from "../usage.ts";

/** Follows the usage records of one streamed chat. */
export interface UsageTally {
	/**
	 * `record` as it stood on an event whose only choice is `choiceIndex`, undefined if it had none or several.
	 * `allFinished`: every choice seen so far has its finish reason, this event's included.
	 */
	note(record: unknown, choiceIndex: number | undefined, hasChoices: boolean, allFinished: boolean): void;
	current(): ReportedUsage | undefined;
	/** Whether `current` is the upstream's own final count. */
	isFinal(): boolean;
}

export function createUsageTally(style: UsageStyle): UsageTally {
	let whole: ReportedUsage | undefined;
	let final = false;
	let summing = false;
	const ofChoice: (ReportedUsage | undefined)[] = [];

	return {
		note(record, choiceIndex, hasChoices, allFinished) {
			const usage = readUsage(record);
			if (usage === undefined) return;
			if (style === "sum" && !hasChoices) {
				whole = summing ? joined([whole, usage]) : usage;
				summing = true;
				final = true;
			} else if (style === "per_choice" && choiceIndex !== undefined) {
				if (final) return;
				ofChoice[choiceIndex] = usage;
				whole = undefined;
			} else {
				whole = usage;
				final = !hasChoices || allFinished;
			}
		},
		current() {
			whole ??= ofChoice.length === 1 ? ofChoice[0] : joined(ofChoice);
			return whole;
		},
		isFinal: () => final,
	};
}

/** Usage of several choices of one prompt: the prompt counts once, what was generated adds up. */
function joined(parts: readonly (ReportedUsage | undefined)[]): ReportedUsage | undefined {
	let sum: ReportedUsage | undefined;
	for (const part of parts) {
		if (part === undefined) continue;
		sum =
			sum === undefined
				? part
				: {
						promptTokens: Math.max(sum.promptTokens ?? 0, part.promptTokens ?? 0) || undefined,
						completionTokens: sumOf(sum.completionTokens, part.completionTokens),
						cachedTokens: Math.max(sum.cachedTokens, part.cachedTokens),
						reasoningTokens: sum.reasoningTokens + part.reasoningTokens,
					};
	}
	return sum;
}
