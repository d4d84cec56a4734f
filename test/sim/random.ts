/** A seeded source of randomness: the same seed gives the same choices. */
export interface Random {
	/** In [0, 1). */
	next(): number;
	/** A whole number from `low` to `high`, both included. */
	int(low: number, high: number): number;
	chance(probability: number): boolean;
	pick<T>(from: readonly T[]): T;
	uuid(): string;
}

/** mulberry32: small, fast, good enough to explore with. */
export function createRandom(seed: number): Random {
	let state = seed >>> 0;
	function next(): number {
		state = (state + 0x6d2b79f5) | 0;
		let t = Math.imul(state ^ (state >>> 15), 1 | state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
	}
	const int = (low: number, high: number) => low + Math.floor(next() * (high - low + 1));
	const hex = (digits: number) => Array.from({ length: digits }, () => Math.floor(next() * 16).toString(16)).join("");
	return {
		next,
		int,
		chance: (probability) => next() < probability,
		pick: (from) => from[int(0, from.length - 1)] as (typeof from)[number],
		uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`,
	};
}
