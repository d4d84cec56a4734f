import { CounterMap } from "./counter-map.ts";
import { SlotPool } from "./slot-pool.ts";

/** Objects by name. Like a Map, without the memory problem described in `SlotPool`. */
export class SlotMap<One extends object> implements Iterable<One> {
	readonly #slots = new SlotPool<One>();
	/** Slot of each name, counted from one. */
	readonly #places = new CounterMap();

	get size(): number {
		return this.#slots.size;
	}

	get(name: string): One | undefined {
		const place = this.#places.of(name);
		return place === 0 ? undefined : this.#slots.at(place - 1);
	}

	set(name: string, one: One): void {
		this.delete(name);
		this.#places.add(name, this.#slots.take(one) + 1);
	}

	delete(name: string): One | undefined {
		const place = this.#places.of(name);
		if (place === 0) return undefined;
		const one = this.#slots.at(place - 1) as One;
		this.#slots.release(place - 1, one);
		this.#places.add(name, -place);
		return one;
	}

	/** Visits all values, in no particular order. */
	[Symbol.iterator](): Iterator<One> {
		return this.#slots[Symbol.iterator]();
	}
}
