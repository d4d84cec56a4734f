import { assert } from "../base/assert.ts";

/** For prompts of at least this length, the sent text is kept instead of the values. */
const LONG_CHARS = 16 * 1024;

/**
 * A prompt to be sent to replicas. A long prompt, once sent, is kept only as part of the sent text: it is then in
 * memory once, and the garbage collector need not visit its values.
 */
export class Prompt {
	#value: unknown;
	#text: string | undefined;
	/** Sent text that contains the prompt's JSON. */
	#sent: OutsideText | undefined;
	#from = 0;
	#isOver = false;

	/** `text`: the prompt's JSON if it already exists. */
	constructor(value: unknown, text?: string) {
		this.#value = value;
		this.#text = text;
	}

	/** Messages of a chat or prompts of a completion; undefined once only the text is kept. */
	get value(): unknown {
		return this.#value;
	}

	/** JSON of the prompt, which is kept for sending. */
	get json(): string {
		const { text } = this;
		if (text !== undefined) return text;
		this.#text = JSON.stringify(this.#value);
		return this.#text;
	}

	get text(): string | undefined {
		return this.#sent === undefined ? this.#text : this.#sent.read().slice(this.#from, -1);
	}

	/** Returns the JSON of an object that has `members` and, as its last member, the prompt. Modifies `members`. */
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
		return this.json;
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
 * Keeps a long text outside the garbage-collected heap, where every few megabytes would trigger a full collection. A
 * form holds the runtime's string without a copy. The owner must free it.
 */
class OutsideText {
	readonly #form = new FormData();

	/** The text must not contain lone surrogates, because `FormData` would replace them. */
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
