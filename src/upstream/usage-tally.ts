import { type ReportedUsage, readUsage, type UsageStyle, usageOfChoices } from "./usage.ts";

/** Follows the usage records of one stream. A class: there is one per open stream. */
export class UsageTally {
	/** Each choice has its own records, on events with that choice. */
	readonly #besideChoices: boolean;
	/**
	 * Each choice ends with a record of its own: in chats on an event without choices, in completions on the choice's
	 * event.
	 */
	readonly #endsChoices: boolean;
	readonly #choicesOfPrompt: number | undefined;
	#whole: ReportedUsage | undefined;
	#final = false;
	/** Every choice has ended with its own record. */
	#allCounted = false;
	/** Number of records without choices, in dialects that end each choice with one. */
	#records = 0;
	/** Undefined if no choice has its own records. */
	#ofChoice: (ReportedUsage | undefined)[] | undefined;

	/**
	 * `choicesOfPrompt`: choices per prompt of a text completion, which may have several prompts; undefined for a chat.
	 */
	constructor(style: UsageStyle, choicesOfPrompt?: number) {
		this.#besideChoices = style === "per_choice" || (style === "sum" && choicesOfPrompt !== undefined);
		this.#endsChoices = style === "sum";
		this.#choicesOfPrompt = choicesOfPrompt;
	}

	/**
	 * Notes the `record` of an event. `choiceIndex`: the event's only choice; undefined if it had none or several.
	 * `finished`: the number of choices seen, if all have their finish reason (this event included); otherwise 0.
	 */
	note(record: unknown, choiceIndex: number | undefined, hasChoices: boolean, finished: number): void {
		const usage = readUsage(record);
		if (usage === undefined) return;
		if (this.#besideChoices && choiceIndex !== undefined) {
			if (this.#final) return;
			this.#ofChoice ??= [];
			this.#ofChoice[choiceIndex] = usage;
			this.#whole = undefined;
			// A running count is not the final one.
			this.#allCounted = this.#endsChoices && finished > 0;
		} else if (this.#endsChoices && !this.#besideChoices && !hasChoices) this.#noteEnd(usage, finished);
		else {
			this.#whole = usage;
			this.#final = !hasChoices || finished > 0;
		}
	}

	#noteEnd(usage: ReportedUsage, finished: number): void {
		if (finished > 0 && this.#records >= finished) {
			// A record beyond the number of choices repeats an earlier one.
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
