import { type ReportedUsage, readUsage, sumOf, type UsageStyle } from "../usage.ts";

/** Follows the usage records of one streamed chat. */
export interface UsageTally {
	/**
	 * `record` as it stood on an event whose only choice is `choiceIndex`, undefined if it had none or several.
	 * `finished`: how many choices were seen so far, if each has its finish reason, this event's included; else 0.
	 */
	note(record: unknown, choiceIndex: number | undefined, hasChoices: boolean, finished: number): void;
	current(): ReportedUsage | undefined;
	/** Whether `current` is the upstream's own final count. */
	isFinal(): boolean;
}

export function createUsageTally(style: UsageStyle): UsageTally {
	let whole: ReportedUsage | undefined;
	let final = false;
	/** Records without choices, where each choice ends with one of its own. */
	let records = 0;
	const ofChoice: (ReportedUsage | undefined)[] = [];

	return {
		note(record, choiceIndex, hasChoices, finished) {
			const usage = readUsage(record);
			if (usage === undefined) return;
			if (style === "sum" && !hasChoices) {
				whole = records > 0 ? joined([whole, usage]) : usage;
				records += 1;
				final = finished > 0 && records >= finished;
			} else if (style === "per_choice" && choiceIndex !== undefined) {
				if (final) return;
				ofChoice[choiceIndex] = usage;
				whole = undefined;
			} else {
				whole = usage;
				final = !hasChoices || finished > 0;
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
