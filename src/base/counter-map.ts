/**
 * Numbers by name, of which nearly all are zero, and which go up and down with each request. A name whose number is zero
 * stays for a while: a Map whose entries come and go is what `SlotPool` says of a Set.
 */
export class CounterMap {
	#numbers = new Map<string, number>();
	#zeros = 0;

	of(name: string): number {
		return this.#numbers.get(name) ?? 0;
	}

	/** Gives the new number. */
	add(name: string, change: number): number {
		const before = this.#numbers.get(name);
		const now = (before ?? 0) + change;
		if (before === 0) this.#zeros -= 1;
		this.#numbers.set(name, now);
		if (now === 0) this.#forget();
		return now;
	}

	/** How many names it holds, those with zero among them. */
	get size(): number {
		return this.#numbers.size;
	}

	/** At most half of the names, and ZEROS_MAX, are there for nothing. */
	#forget(): void {
		this.#zeros += 1;
		if (this.#zeros <= Math.max(ZEROS_MAX, this.#numbers.size / 2)) return;
		this.#numbers = new Map([...this.#numbers].filter(([, number]) => number !== 0));
		this.#zeros = 0;
	}
}

const ZEROS_MAX = 1_000;
