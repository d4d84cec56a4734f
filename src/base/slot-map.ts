import { CounterMap } from "./counter-map.ts";
import { SlotPool } from "./slot-pool.ts";

/** Objects by name, like a Map, but without the memory problem that `SlotPool` describes. */
export class SlotMap<One extends object> implements Iterable<One> {
	readonly #slots = new SlotPool<One>();
	/** Slot of each name plus one; 0 for unknown names. */
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
