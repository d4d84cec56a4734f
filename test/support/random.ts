/** A seeded source of random decisions: equal seeds give equal sequences. */
export interface Random {
	fraction(): number;
	between(from: number, to: number): number;
	int(low: number, high: number): number;
	chance(probability: number): boolean;
	pick<T>(list: readonly T[]): T;
	shuffled<T>(list: readonly T[]): T[];
	uuid(): string;
	/** Returns an independent source: drawing from it does not change this source's sequence. */
	fork(): Random;
}

/** Creates a source with the generator mulberry32, which is small and fast. */
export function createRandom(seed: number): Random {
	let state = seed >>> 0;
	function fraction(): number {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	}
	const int = (low: number, high: number) => low + Math.floor(fraction() * (high - low + 1));
	const hex = (digits: number) => Array.from({ length: digits }, () => int(0, 15).toString(16)).join("");
	return {
		fraction,
		between: (from, to) => from + fraction() * (to - from),
		int,
		chance: (probability) => fraction() < probability,
		pick(list) {
			if (list.length === 0) throw new Error("there is nothing to pick from");
			return list[int(0, list.length - 1)] as (typeof list)[number];
		},
		shuffled(list) {
			const result = [...list];
			for (let at = result.length - 1; at > 0; at--) {
				const other = int(0, at);
				[result[at], result[other]] = [result[other] as never, result[at] as never];
			}
			return result;
		},
		uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`,
		fork: () => createRandom(Math.floor(fraction() * 2 ** 32)),
	};
}
