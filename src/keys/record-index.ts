/**
 * Finds records by 32 bits that are as good as random: open addressing in 256 tables, each doubled by itself, so that no
 * insertion copies more than a 256th of it.
 */
export class RecordIndex {
	/** Numbers of records from 1; 0: nothing. */
	readonly #tables = Array.from({ length: TABLES }, () => new Uint32Array(SIZE_MIN));
	readonly #counts = new Uint32Array(TABLES);
	readonly #hashOf: (record: number) => number;

	constructor(hashOf: (record: number) => number) {
		this.#hashOf = hashOf;
	}

	/** The record for which `is` holds; -1 if there is none. */
	find(hash: number, is: (record: number) => boolean): number {
		const table = this.#tables[hash >>> TABLE_SHIFT] as Uint32Array;
		const mask = table.length - 1;
		for (let at = hash & mask; table[at] !== 0; at = (at + 1) & mask) {
			const record = (table[at] as number) - 1;
			if (is(record)) return record;
		}
		return -1;
	}

	add(record: number): void {
		const hash = this.#hashOf(record);
		const which = hash >>> TABLE_SHIFT;
		const count = (this.#counts[which] as number) + 1;
		this.#counts[which] = count;
		let table = this.#tables[which] as Uint32Array;
		if (count > table.length * LOAD_MAX) {
			const larger = new Uint32Array(2 * table.length);
			for (const kept of table) if (kept !== 0) place(larger, this.#hashOf(kept - 1), kept);
			this.#tables[which] = larger;
			table = larger;
		}
		place(table, hash, record + 1);
	}

	/** While the record can still be read. What stands behind it moves up, as if it had never been. */
	remove(record: number): void {
		const hash = this.#hashOf(record);
		const which = hash >>> TABLE_SHIFT;
		const table = this.#tables[which] as Uint32Array;
		const mask = table.length - 1;
		let gap = hash & mask;
		while (table[gap] !== record + 1) gap = (gap + 1) & mask;
		for (let at = (gap + 1) & mask; table[at] !== 0; at = (at + 1) & mask) {
			const wanted = this.#hashOf((table[at] as number) - 1) & mask;
			// It may stand in the gap unless its own place lies behind that.
			if (((at - wanted) & mask) < ((at - gap) & mask)) continue;
			table[gap] = table[at] as number;
			gap = at;
		}
		table[gap] = 0;
		this.#counts[which] = (this.#counts[which] as number) - 1;
	}
}

const TABLES = 256;
const TABLE_SHIFT = 24;
const SIZE_MIN = 8;
const LOAD_MAX = 0.8;

function place(table: Uint32Array, hash: number, value: number): void {
	const mask = table.length - 1;
	let at = hash & mask;
	while (table[at] !== 0) at = (at + 1) & mask;
	table[at] = value;
}
