import { assert } from "../base/assert.ts";

/** A longer request is kept as the sent text. */
const LONG_CHARS = 16 * 1024;

/**
 * A prompt on its way to a replica. Once sent, a long prompt is a range of the sent text, so it is in memory once for a
 * possible retry, and no collection walks its values.
 */
export class Prompt {
	#value: unknown;
	#text: string | undefined;
	/** The sent text, which contains the prompt's JSON. */
	#sent: OutsideText | undefined;
	#from = 0;
	#isOver = false;

	/** `text`: the prompt's JSON, if it exists; then it is not written again. */
	constructor(value: unknown, text?: string) {
		this.#value = value;
		this.#text = text;
	}

	/** The messages of a chat, or the prompts of a completion; undefined once the prompt is kept as text. */
	get value(): unknown {
		return this.#value;
	}

	get text(): string | undefined {
		return this.#sent === undefined ? this.#text : this.#sent.read().slice(this.#from, -1);
	}

	/** Returns the JSON of an object of `members` and, last, the prompt. The function owns `members` from here on. */
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

	letGo(): void {
		this.#isOver = true;
		this.#value = undefined;
		this.#text = undefined;
		this.#sent?.letGo();
		this.#sent = undefined;
	}
}

/**
 * Keeps a long text where the collector does not count it: some megabytes of growth start a full collection. A form
 * keeps the runtime's own string without a copy. The owner must free it.
 */
class OutsideText {
	readonly #form = new FormData();

	/** The text must not have lone surrogates: a form would change them. */
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
