/** Length of the first blocks, and of the hashed part of every block. */
const BLOCK_CHARS = 1_024;
/** Number of such short blocks. Later blocks are longer, so that a long prompt has few. */
const SHORT_BLOCKS = 16;
const SHORT_CHARS = SHORT_BLOCKS * BLOCK_CHARS;
const LONG_BLOCK_CHARS = 4 * BLOCK_CHARS;
/** Limit at about 4 million characters. Characters beyond it count as not cached. */
const BLOCKS_MAX = 1_024;

/** The part of a request on which the choice of a replica depends. */
export interface RoutedPrompt {
	/** Length of the prompt's JSON, which approximates its prefill: token counts are unknown before the answer. */
	readonly chars: number;
	/** One hash per complete block, of the block and all blocks before it, so equal hashes mean equal beginnings. */
	readonly hashes: Uint32Array;
	/** True if the gateway sees when the first token arrives. */
	readonly streamed: boolean;
}

/**
 * Hashes a prompt. Of a long block only the beginning is hashed: prompts that are equal up to there rarely differ in
 * the rest. `seed` is secret, so that hashes reveal nothing about the text, and no customer can construct equal hashes.
 */
export function routedPrompt(text: string, seed: bigint, streamed: boolean): RoutedPrompt {
	const hashes = new Uint32Array(countBlocks(text.length));
	let hash = seed;
	for (let block = 0; block < hashes.length; block += 1) {
		const from = charsOfBlocks(block);
		hash = Bun.hash.wyhash(text.slice(from, from + BLOCK_CHARS), hash);
		hashes[block] = Number(hash & 0xffff_ffffn);
	}
	return { chars: text.length, hashes, streamed };
}

/** Total length of the first `blocks` blocks. */
export function charsOfBlocks(blocks: number): number {
	return blocks <= SHORT_BLOCKS ? blocks * BLOCK_CHARS : SHORT_CHARS + (blocks - SHORT_BLOCKS) * LONG_BLOCK_CHARS;
}

/** Number of complete blocks, at most BLOCKS_MAX. */
export function countBlocks(chars: number): number {
	return chars < SHORT_CHARS
		? Math.floor(chars / BLOCK_CHARS)
		: Math.min(SHORT_BLOCKS + Math.floor((chars - SHORT_CHARS) / LONG_BLOCK_CHARS), BLOCKS_MAX);
}
