import { assert } from "../base/assert.ts";

/** A longer request is held as what was sent of it. */
const LONG_CHARS = 16 * 1024;

/**
 * A prompt on its way to a replica. As it was read until it is written, and then, if it is long, as a place in what was sent:
 * so while an answer is awaited it is in memory once, in case another replica must be asked, and what else was made of the
 * request is garbage that no collection has to look at.
 */
export class Prompt {
	#value: unknown;
	#text: string | undefined;
	/** Holds what was sent, of which the prompt's JSON is a part. */
	#sent: OutsideText | undefined;
	#from = 0;
	#isOver = false;

	/** `text`: its JSON, if it is at hand; then nothing writes it again. */
	constructor(value: unknown, text?: string) {
		this.#value = value;
		this.#text = text;
	}

	/** The messages of a chat, the prompt or prompts of a completion; undefined once it is held as text. */
	get value(): unknown {
		return this.#value;
	}

	/** Its JSON, if that is at hand. */
	get text(): string | undefined {
		return this.#sent === undefined ? this.#text : this.#sent.read().slice(this.#from, -1);
	}

	/** The JSON of an object of these members and, as the last one, the prompt. `members` is this function's own from here on. */
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

	/** Nobody else will be asked. */
	letGo(): void {
		this.#isOver = true;
		this.#value = undefined;
		this.#text = undefined;
		this.#sent?.letGo();
		this.#sent = undefined;
	}
}

/**
 * A long text that waits, where the collector does not count it: it takes what it counts and cannot free for growth of the heap, and some
 * megabytes of that for a reason to walk through all of it. A form is such a place, as it keeps the runtime's own string, without a copy.
 * What nobody counts must be let go by who holds it; the string is freed then, at once.
 */
class OutsideText {
	readonly #form = new FormData();

	/** A text without lone surrogates: a form would change those. */
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
