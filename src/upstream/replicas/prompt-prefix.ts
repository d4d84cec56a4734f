/** Length of the first blocks, and of the hashed part of every block. */
const BLOCK_CHARS = 1_024;
/** Later blocks are longer, so that a long prompt has few. */
const SHORT_BLOCKS = 16;
const SHORT_CHARS = SHORT_BLOCKS * BLOCK_CHARS;
const LONG_BLOCK_CHARS = 4 * BLOCK_CHARS;
/** About 4 million characters. The rest of a longer prompt counts as not cached. */
const BLOCKS_MAX = 1_024;

/** What the choice of a replica needs of a request. */
export interface RoutedPrompt {
	/** Length of the prompt's JSON, the measure of its prefill: tokens are unknown before the answer. */
	readonly chars: number;
	/** One per complete block. Depends on the block and all before it, so equal hashes mean equal beginnings. */
	readonly hashes: Uint32Array;
	/** Whether the first token is seen when it arrives. */
	readonly streamed: boolean;
}

/**
 * Hashes a prompt. Of a long block only the beginning counts: prompts that are equal up to there rarely differ in the
 * rest. `seed` is secret, so that hashes tell nothing about the text, and no customer can choose equal ones.
 */
export function routedPrompt(text: string, seed: bigint, streamed: boolean): RoutedPrompt {
	const hashes = new Uint32Array(blocksIn(text.length));
	let hash = seed;
	for (let block = 0; block < hashes.length; block += 1) {
		const from = charsOf(block);
		hash = Bun.hash.wyhash(text.slice(from, from + BLOCK_CHARS), hash);
		hashes[block] = Number(hash & 0xffff_ffffn);
	}
	return { chars: text.length, hashes, streamed };
}

/** Length of the first blocks. */
export function charsOf(blocks: number): number {
	return blocks <= SHORT_BLOCKS ? blocks * BLOCK_CHARS : SHORT_CHARS + (blocks - SHORT_BLOCKS) * LONG_BLOCK_CHARS;
}

/** Number of complete blocks, at most BLOCKS_MAX. */
export function blocksIn(chars: number): number {
	return chars < SHORT_CHARS
		? Math.floor(chars / BLOCK_CHARS)
		: Math.min(SHORT_BLOCKS + Math.floor((chars - SHORT_CHARS) / LONG_BLOCK_CHARS), BLOCKS_MAX);
}
