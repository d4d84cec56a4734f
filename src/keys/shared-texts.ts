/** Texts that many share, each kept once, as long as somebody has it; known by a number. */
export class SharedTexts {
	readonly #numbers = new Map<string, number>();
	readonly #texts: string[] = [];
	readonly #holders: number[] = [];
	readonly #free: number[] = [];

	/** Each `hold` needs one `release`. */
	hold(text: string): number {
		const known = this.#numbers.get(text);
		const number = known ?? this.#free.pop() ?? this.#texts.length;
		if (known === undefined) {
			this.#numbers.set(text, number);
			this.#texts[number] = text;
			this.#holders[number] = 0;
		}
		this.#holders[number] = (this.#holders[number] as number) + 1;
		return number;
	}

	release(number: number): void {
		const holders = (this.#holders[number] as number) - 1;
		this.#holders[number] = holders;
		if (holders > 0) return;
		this.#numbers.delete(this.text(number));
		this.#texts[number] = "";
		this.#free.push(number);
	}

	text(number: number): string {
		return this.#texts[number] as string;
	}

	get size(): number {
		return this.#numbers.size;
	}
}
