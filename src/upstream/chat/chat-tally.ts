import { type ReportedUsage, readUsage, type UsageStyle, usageOfChoices } from "../usage.ts";

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
	return new Tally(style);
}

/** A class, since there is one for each open stream. */
class Tally implements UsageTally {
	readonly #style: UsageStyle;
	#whole: ReportedUsage | undefined;
	#final = false;
	/** Records without choices, where each choice ends with one of its own. */
	#records = 0;
	/** Undefined where no choice has records of its own. */
	#ofChoice: (ReportedUsage | undefined)[] | undefined;

	constructor(style: UsageStyle) {
		this.#style = style;
	}

	note(record: unknown, choiceIndex: number | undefined, hasChoices: boolean, finished: number): void {
		const usage = readUsage(record);
		if (usage === undefined) return;
		if (this.#style === "sum" && !hasChoices && finished > 0 && this.#records >= finished) {
			// One more than there are choices is the same said again.
			if (finished === 1) this.#whole = usage;
			this.#final = true;
		} else if (this.#style === "sum" && !hasChoices) {
			this.#whole = this.#records > 0 ? usageOfChoices([this.#whole, usage]) : usage;
			this.#records += 1;
			this.#final = finished > 0 && this.#records >= finished;
		} else if (this.#style === "per_choice" && choiceIndex !== undefined) {
			if (this.#final) return;
			this.#ofChoice ??= [];
			this.#ofChoice[choiceIndex] = usage;
			this.#whole = undefined;
		} else {
			this.#whole = usage;
			this.#final = !hasChoices || finished > 0;
		}
	}

	current(): ReportedUsage | undefined {
		const parts = this.#ofChoice;
		if (parts !== undefined) this.#whole ??= parts.length === 1 ? parts[0] : usageOfChoices(parts);
		return this.#whole;
	}

	isFinal(): boolean {
		return this.#final;
	}
}
