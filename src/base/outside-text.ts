/**
 * A long text that waits, where the collector does not count it: it takes what it counts and cannot free for growth of the heap, and some
 * megabytes of that for a reason to walk through all of it. A form is such a place, as it keeps the runtime's own string, without a copy.
 * What nobody counts must be let go by who holds it; the string is freed then, at once.
 */
export class OutsideText {
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
