/**
 * Counters by name that requests raise and lower; most are zero. A name at zero is kept for a while, because a Map
 * whose entries come and go has the memory problem that `SlotPool` describes.
 */
export class CounterMap {
	#numbers = new Map<string, number>();
	#zeros = 0;

	of(name: string): number {
		return this.#numbers.get(name) ?? 0;
	}

	add(name: string, change: number): number {
		const before = this.#numbers.get(name);
		const now = (before ?? 0) + change;
		if (before === 0) this.#zeros -= 1;
		this.#numbers.set(name, now);
		if (now === 0) this.#forget();
		return now;
	}

	/** Number of names, including those at zero. */
	get size(): number {
		return this.#numbers.size;
	}

	/** Removes names at zero, so that at most half of all names, and at most ZEROS_MAX, are at zero. */
	#forget(): void {
		this.#zeros += 1;
		if (this.#zeros <= Math.max(ZEROS_MAX, this.#numbers.size / 2)) return;
		this.#numbers = new Map([...this.#numbers].filter(([, number]) => number !== 0));
		this.#zeros = 0;
	}
}

const ZEROS_MAX = 1_000;
