import { type ReportedUsage, readUsage, type UsageStyle, usageOfChoices } from "../usage.ts";
import type { CompletionShape } from "./completion-answer.ts";

/** Follows the usage records of one streamed completion, which may have several prompts. */
export interface CompletionTally {
	/** As `UsageTally.note`. */
	note(record: unknown, choiceIndex: number | undefined, hasChoices: boolean, allFinished: boolean): void;
	current(): ReportedUsage | undefined;
	isFinal(): boolean;
}

/**
 * A record beside a choice is that choice's own, running or final, where the family does it so; the prompt counts once
 * for all choices of one prompt, and once for each prompt. A record without choices is the whole.
 */
export function createCompletionTally(style: UsageStyle, shape: CompletionShape): CompletionTally {
	let whole: ReportedUsage | undefined;
	let wholeIsFinal = false;
	const ofChoice: (ReportedUsage | undefined)[] = [];
	let allCounted = false;

	return {
		note(record, choiceIndex, hasChoices, allFinished) {
			const usage = readUsage(record);
			if (usage === undefined) return;
			if (!hasChoices || style === "last" || choiceIndex === undefined) {
				whole = usage;
				wholeIsFinal = !hasChoices || allFinished;
			} else if (!wholeIsFinal) {
				ofChoice[choiceIndex] = usage;
				// Only llama.cpp ends each choice with its own count; elsewhere a running count says nothing of the end.
				allCounted = style === "sum" && allFinished;
			}
		},
		current: () => whole ?? usageOfChoices(ofChoice, shape.n),
		isFinal: () => wholeIsFinal || allCounted,
	};
}
