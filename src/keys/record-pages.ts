/**
 * Records of a fixed number of 32-bit words, in pages outside of the heap that the collector walks. A record's number stays
 * until it is freed; the pages stay for the next ones.
 */
export class RecordPages {
	readonly words: number;
	readonly #pages: Uint32Array[] = [];
	/** Heads a list through the first words of the free ones; numbers from 1, 0: none. */
	#free = 0;
	#used = 0;
	count = 0;

	constructor(words: number) {
		this.words = words;
	}

	/** The number of a record that is all zeros. */
	take(): number {
		this.count += 1;
		if (this.#free !== 0) {
			const record = this.#free - 1;
			this.#free = this.get(record, 0);
			this.set(record, 0, 0);
			return record;
		}
		if (this.#used === this.#pages.length * PAGE_RECORDS) this.#pages.push(new Uint32Array(PAGE_RECORDS * this.words));
		this.#used += 1;
		return this.#used - 1;
	}

	free(record: number): void {
		this.count -= 1;
		this.bytes(record, 0, 4 * this.words).fill(0);
		this.set(record, 0, this.#free);
		this.#free = record + 1;
	}

	get(record: number, word: number): number {
		const page = this.#pages[Math.floor(record / PAGE_RECORDS)] as Uint32Array;
		return page[(record % PAGE_RECORDS) * this.words + word] as number;
	}

	set(record: number, word: number, value: number): void {
		const page = this.#pages[Math.floor(record / PAGE_RECORDS)] as Uint32Array;
		page[(record % PAGE_RECORDS) * this.words + word] = value;
	}

	/** A view of a record's bytes from one of its words on. */
	bytes(record: number, word: number, length: number): Uint8Array {
		const page = this.#pages[Math.floor(record / PAGE_RECORDS)] as Uint32Array;
		return new Uint8Array(page.buffer, 4 * ((record % PAGE_RECORDS) * this.words + word), length);
	}

	/** One more than the largest number there has been. */
	get end(): number {
		return this.#used;
	}
}

const PAGE_RECORDS = 8_192;
