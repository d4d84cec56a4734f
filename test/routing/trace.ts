/** Requests of a trace in Mooncake's format. */
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

/** Tokens per block. A block's id identifies the prompt up to the block's end. */
export const BLOCK_TOKENS = 512;

export interface TraceRequest {
	readonly atS: number;
	readonly promptTokens: number;
	readonly outputTokens: number;
	/** Equal ids mean prompts that are equal up to the block's end. */
	readonly blocks: readonly number[];
}

interface Line {
	readonly timestamp: number;
	readonly input_length: number;
	readonly output_length: number;
	readonly hash_ids: readonly number[];
}

const CONVERSATION = join(import.meta.dir, "conversation.gz");

/** Reads a trace in its published format. */
export async function readTrace(path: string): Promise<TraceRequest[]> {
	const lines = (await Bun.file(path).text()).trimEnd().split("\n");
	return lines.map((line) => {
		const { timestamp, input_length, output_length, hash_ids } = JSON.parse(line) as Line;
		return { atS: timestamp / 1000, promptTokens: input_length, outputTokens: output_length, blocks: hash_ids };
	});
}

/** Reads the stored trace: lines of milliseconds, prompt tokens, output tokens, block ids as first id and length. */
export async function readConversation(): Promise<TraceRequest[]> {
	const text = gunzipSync(await Bun.file(CONVERSATION).bytes()).toString();
	return text.split("\n").map((line) => {
		const [at, prompt, output, ...runs] = line.split(" ").map(Number) as [number, number, number, ...number[]];
		const blocks: number[] = [];
		for (let run = 0; run < runs.length; run += 2)
			for (let nth = 0; nth < (runs[run + 1] as number); nth += 1) blocks.push((runs[run] as number) + nth);
		return { atS: at / 1000, promptTokens: prompt, outputTokens: output, blocks };
	});
}

/** The same requests, but with no shared beginnings. */
export function withoutSharedPrefixes(trace: readonly TraceRequest[]): TraceRequest[] {
	let next = 0;
	return trace.map((request) => ({ ...request, blocks: request.blocks.map(() => next++) }));
}
