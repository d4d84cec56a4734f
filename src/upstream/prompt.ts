import { assert } from "../base/assert.ts";

/** From this length on, the sent text is kept instead of the values. */
const LONG_CHARS = 16 * 1024;

/**
 * A prompt for a replica. After sending, a long prompt is a range of the sent text: it is in memory once for a retry,
 * and garbage collections do not visit its values.
 */
export class Prompt {
	#value: unknown;
	#text: string | undefined;
	/** Sent text that contains the prompt's JSON. */
	#sent: OutsideText | undefined;
	#from = 0;
	#isOver = false;

	/** `text`: JSON of the prompt if it exists, which saves writing it again. */
	constructor(value: unknown, text?: string) {
		this.#value = value;
		this.#text = text;
	}

	/** Messages of a chat or prompts of a completion; undefined once the prompt is kept as text. */
	get value(): unknown {
		return this.#value;
	}

	get text(): string | undefined {
		return this.#sent === undefined ? this.#text : this.#sent.read().slice(this.#from, -1);
	}

	/** Returns the JSON of an object with `members` and, last, the prompt. Modifies `members`. */
	writtenInto(members: Record<string, unknown>, field: string): string {
		assert(!this.#isOver, "a prompt that was let go is not sent again");
		const { text } = this;
		if (text === undefined) members[field] = this.#value;
		const json = JSON.stringify(members);
		const sent = text === undefined ? json : `${json.slice(0, -1)},"${field}":${text}}`;
		if (sent.length >= LONG_CHARS) {
			if (text === undefined) delete members[field];
			const others = text === undefined ? JSON.stringify(members) : json;
			this.#from = others.length + `"${field}":`.length;
			this.#sent?.letGo();
			this.#sent = new OutsideText(sent);
			this.#text = undefined;
			this.#value = undefined;
		}
		return sent;
	}

	toJSON(): string {
		return this.text ?? JSON.stringify(this.#value);
	}

	letGo(): void {
		this.#isOver = true;
		this.#value = undefined;
		this.#text = undefined;
		this.#sent?.letGo();
		this.#sent = undefined;
	}
}

/**
 * Keeps a long text outside the collector's accounts, in which some megabytes of growth start a full collection. A form
 * holds the runtime's string without a copy. The owner must free it.
 */
class OutsideText {
	readonly #form = new FormData();

	/** The text must have no lone surrogates, which a form would change. */
	constructor(text: string) {
		this.#form.append("", text);
	}

	read(): string {
		return this.#form.get("") as string;
	}

	letGo(): void {
		this.#form.delete("");
	}
}
