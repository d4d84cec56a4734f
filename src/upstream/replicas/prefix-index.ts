import { charsOfBlocks, countBlocks } from "./prompt-prefix.ts";

/** Maximum memory of all indexes of a process together. */
const INDEX_BYTES_MAX = 32 * 1024 * 1024;
const ENTRY_BYTES = 12;
/** Maximum entries of an index; enough for the cache of a large server: 64 million characters of short blocks. */
const ENTRIES_MAX = 65_536;
/** Number of entries that may contain a given hash (set-associative). */
const WAYS = 8;
/** Fraction of the difference by which one answer moves the learned capacity, because it may be an exception. */
const STEP = 1 / 4;
/** Rounds cached tokens to the nearest block, because servers count them without their template's tokens. */
const ROUNDING_CHARS = 512;

/** The beginning of a prompt that was in a replica's cache when it was sent, as estimated. Ages: of its last block. */
export interface CachedPrefix {
	readonly blocks: number;
	readonly age: number;
	/** Blocks that were in the cache at some time, including blocks that may have been dropped. */
	readonly knownBlocks: number;
	readonly knownAge: number;
}

/** Entries per index if this many replicas have an index: a power of two, equal for all. */
export function indexEntriesFor(replicas: number): number {
	const fit = Math.floor(INDEX_BYTES_MAX / ENTRY_BYTES / Math.max(replicas, 1));
	return Math.min(ENTRIES_MAX, Math.max(WAYS, 2 ** Math.floor(Math.log2(fit))));
}

/**
 * Estimates which beginnings of prompts a replica has cached. A block's age is the number of characters that were new
 * to the cache since its last use. A server drops the least recently used blocks, so the cache holds blocks up to a
 * certain age, its capacity. The capacity is learned from the cached tokens that the server reports. In a full index, a
 * new block replaces the least recently used of the entries that may contain its hash.
 */
export class PrefixIndex {
	#hashes = new Uint32Array(0);
	/** Per block: `#writtenChars` at its last use. A block's age is measured in written characters, not in time. */
	#usedAt = new Float64Array(0);
	#entries = ENTRIES_MAX;
	#writtenChars = 1;
	#capacityChars = Number.MAX_VALUE;

	/** Sets the number of entries; forgets all blocks if the number changes. */
	resize(entries: number): void {
		if (entries === this.#entries) return;
		this.#entries = entries;
		this.#hashes = new Uint32Array(0);
		this.#usedAt = new Float64Array(0);
	}

	/** Number of the prompt's first blocks that are probably cached. */
	cachedBlocks(hashes: Uint32Array): number {
		return this.#blocksUpTo(hashes, this.#capacityChars);
	}

	/** Adds a prompt that is sent to the replica. Returns the beginning that was known before. */
	add(hashes: Uint32Array): CachedPrefix {
		if (this.#hashes.length === 0) {
			this.#hashes = new Uint32Array(this.#entries);
			this.#usedAt = new Float64Array(this.#entries);
		}
		const blocks = this.cachedBlocks(hashes);
		const knownBlocks = this.#blocksUpTo(hashes, Number.MAX_VALUE);
		const found = { blocks, age: this.#ageAt(hashes, blocks), knownBlocks, knownAge: this.#ageAt(hashes, knownBlocks) };
		this.#writtenChars += charsOfBlocks(hashes.length) - charsOfBlocks(blocks);
		// Later blocks get an older age, because a server drops the end of a prompt before its beginning.
		for (let at = 0; at < hashes.length; at += 1)
			this.#use(hashes[at] as number, this.#writtenChars - charsOfBlocks(at + 1));
		return found;
	}

	/** Learns the capacity from the cached share of an answered prompt. */
	learn({ blocks, age, knownBlocks, knownAge }: CachedPrefix, chars: number, cachedShare: number): void {
		const cached = countBlocks(cachedShare * chars + ROUNDING_CHARS);
		const capacity = this.#capacityChars;
		if (cached < blocks && age < capacity)
			this.#capacityChars = capacity === Number.MAX_VALUE ? age : capacity - (capacity - age) * STEP;
		else if (cached >= knownBlocks && knownBlocks > blocks) this.#capacityChars += (knownAge - capacity) * STEP;
	}

	/** Binary search, because a server that has a block also has all blocks before it. */
	#blocksUpTo(hashes: Uint32Array, ageMax: number): number {
		if (this.#hashes.length === 0) return 0;
		let low = 0;
		let high = hashes.length;
		while (low < high) {
			const middle = (low + high + 1) >>> 1;
			if (this.#ageOf(hashes[middle - 1] as number) <= ageMax) low = middle;
			else high = middle - 1;
		}
		return low;
	}

	#ageAt(hashes: Uint32Array, blocks: number): number {
		return blocks === 0 ? 0 : this.#ageOf(hashes[blocks - 1] as number);
	}

	/** Age of a block; infinite if the block is unknown. */
	#ageOf(hash: number): number {
		const from = this.#placeOf(hash);
		for (let at = from; at < from + WAYS; at += 1)
			if (this.#hashes[at] === hash) return this.#writtenChars - (this.#usedAt[at] as number);
		return Number.POSITIVE_INFINITY;
	}

	#use(hash: number, at: number): void {
		const from = this.#placeOf(hash);
		let chosen = from;
		for (let entry = from; entry < from + WAYS; entry += 1) {
			if (this.#hashes[entry] === hash) {
				chosen = entry;
				break;
			}
			if ((this.#usedAt[entry] as number) < (this.#usedAt[chosen] as number)) chosen = entry;
		}
		this.#hashes[chosen] = hash;
		this.#usedAt[chosen] = at;
	}

	#placeOf(hash: number): number {
		return (hash & (this.#entries / WAYS - 1)) * WAYS;
	}
}
