import { type ReportedUsage, readUsage, type UsageStyle, usageOfChoices } from "./usage.ts";

/** Follows the usage records of one stream. A class, since there is one for each open stream. */
export class UsageTally {
	/** Each choice has records of its own, on events with that choice. */
	readonly #besideChoices: boolean;
	/** Each choice ends with a record of its own: on an event without choices in chats, beside the choice in completions. */
	readonly #endsChoices: boolean;
	readonly #choicesOfPrompt: number | undefined;
	#whole: ReportedUsage | undefined;
	#final = false;
	/** Every choice has ended with its own record. */
	#allCounted = false;
	/** Records without choices, where each choice ends with one of its own. */
	#records = 0;
	/** Undefined where no choice has records of its own. */
	#ofChoice: (ReportedUsage | undefined)[] | undefined;

	/** `choicesOfPrompt`: of a text completion, which may have several prompts; undefined for a chat. */
	constructor(style: UsageStyle, choicesOfPrompt?: number) {
		this.#besideChoices = style === "per_choice" || (style === "sum" && choicesOfPrompt !== undefined);
		this.#endsChoices = style === "sum";
		this.#choicesOfPrompt = choicesOfPrompt;
	}

	/**
	 * `record` as it stood on an event whose only choice is `choiceIndex`, undefined if it had none or several.
	 * `finished`: how many choices were seen so far, if each has its finish reason, this event's included; else 0.
	 */
	note(record: unknown, choiceIndex: number | undefined, hasChoices: boolean, finished: number): void {
		const usage = readUsage(record);
		if (usage === undefined) return;
		if (this.#besideChoices && choiceIndex !== undefined) {
			if (this.#final) return;
			this.#ofChoice ??= [];
			this.#ofChoice[choiceIndex] = usage;
			this.#whole = undefined;
			// A running count says nothing of the end.
			this.#allCounted = this.#endsChoices && finished > 0;
		} else if (this.#endsChoices && !this.#besideChoices && !hasChoices) this.#noteEnd(usage, finished);
		else {
			this.#whole = usage;
			this.#final = !hasChoices || finished > 0;
		}
	}

	#noteEnd(usage: ReportedUsage, finished: number): void {
		if (finished > 0 && this.#records >= finished) {
			// One more than there are choices is the same said again.
			if (finished === 1) this.#whole = usage;
			this.#final = true;
			return;
		}
		this.#whole = this.#records > 0 ? usageOfChoices([this.#whole, usage]) : usage;
		this.#records += 1;
		this.#final = finished > 0 && this.#records >= finished;
	}

	current(): ReportedUsage | undefined {
		const parts = this.#ofChoice;
		if (parts !== undefined)
			this.#whole ??= parts.length === 1 ? parts[0] : usageOfChoices(parts, this.#choicesOfPrompt);
		return this.#whole;
	}

	/** Whether `current` is the upstream's own final count. */
	isFinal(): boolean {
		return this.#final || this.#allCounted;
	}
}
