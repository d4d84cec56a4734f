/** A seeded source of decisions: the same seed gives the same faults in the same order. */
export interface Random {
	/** In [0, 1). */
	fraction(): number;
	/** In [from, to). */
	between(from: number, to: number): number;
	pick<T>(list: readonly T[]): T;
	/** The same members in another order. */
	shuffled<T>(list: readonly T[]): T[];
	/** A source of its own, so that what one lane draws does not shift another's. */
	fork(): Random;
}

/** mulberry32 */
export function createRandom(seed: number): Random {
	let state = seed >>> 0;
	const random: Random = {
		fraction() {
			state = (state + 0x6d2b79f5) >>> 0;
			let mixed = Math.imul(state ^ (state >>> 15), state | 1);
			mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
			return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
		},
		between: (from, to) => from + random.fraction() * (to - from),
		pick: (list) => {
			if (list.length === 0) throw new Error("there is nothing to pick from");
			return list[Math.floor(random.fraction() * list.length)] as (typeof list)[number];
		},
		shuffled(list) {
			const result = [...list];
			for (let at = result.length - 1; at > 0; at--) {
				const other = Math.floor(random.fraction() * (at + 1));
				[result[at], result[other]] = [result[other] as never, result[at] as never];
			}
			return result;
		},
		fork: () => createRandom(Math.floor(random.fraction() * 2 ** 32)),
	};
	return random;
}
