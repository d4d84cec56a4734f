/** Simulated model servers: a prefix cache of blocks, prefill in order of arrival, a bounded batch of decoding. */
import type { Timeline } from "../sim/timeline.ts";
import { BLOCK_TOKENS, type TraceRequest } from "./trace.ts";

export interface ServerKind {
	readonly cacheBlocks: number;
	/** Prompt tokens that are processed before waiting requests may join the batch; infinite: the whole prompt. */
	readonly chunkTokens: number;
	/** Factor by which the first server is slower; default 1. */
	readonly slowed?: number;
}

/** Uncached prompt tokens that an otherwise idle server prefills per second. */
const PREFILL_TOKENS_S = 12_000;
/** Seconds per output token of a request that runs alone. */
const TOKEN_S = 1 / 45;
const BATCH_MAX = 128;
/** Factor added to prefill and decoding times by a full batch. */
const SLOWED = 1;

export interface Served {
	readonly request: TraceRequest;
	cachedTokens: number;
	/** Called at the first token and after the last one. */
	first(): void;
	over(): void;
}

/** Blocks in a cache that drops the least recently used block. */
export class Cache {
	readonly #blocks = new Set<number>();
	readonly #max: number;

	constructor(max: number) {
		this.#max = max;
	}

	get size(): number {
		return this.#blocks.size;
	}

	match(blocks: readonly number[], coming?: ReadonlyMap<number, number>): number {
		let known = 0;
		while (known < blocks.length) {
			const block = blocks[known] as number;
			if (!this.#blocks.has(block) && !coming?.has(block)) break;
			known += 1;
		}
		return known;
	}

	/** A prompt's end is dropped before its beginning. */
	use(blocks: readonly number[]): void {
		for (const block of blocks.toReversed()) {
			this.#blocks.delete(block);
			this.#blocks.add(block);
		}
		for (const oldest of this.#blocks) {
			if (this.#blocks.size <= this.#max) break;
			this.#blocks.delete(oldest);
		}
	}
}

export class SimulatedServer {
	readonly #time: Timeline;
	readonly #kind: ServerKind;
	readonly #speed: number;
	readonly #cache: Cache;
	/** Number of waiting prompts that contain a block, by block. */
	readonly #coming = new Map<number, number>();
	readonly #queue: Served[] = [];
	#decoding = 0;
	/** Prompt in prefill, its tokens after the current chunk, and the end of that chunk. */
	#current: Served | undefined;
	#left = 0;
	#chunkEndsS = 0;
	busyS = 0;
	hitTokens = 0;

	constructor(time: Timeline, kind: ServerKind, isFirst: boolean) {
		this.#time = time;
		this.#speed = PREFILL_TOKENS_S / (isFirst ? (kind.slowed ?? 1) : 1);
		this.#kind = kind;
		this.#cache = new Cache(kind.cacheBlocks);
	}

	/** Seconds until a request that is sent now would have its first token. */
	outlookS(request: TraceRequest): number {
		let tokens = this.#left + uncached(request, this.#cache.match(request.blocks, this.#coming));
		for (const { request: other } of this.#queue) tokens += uncached(other, this.#cache.match(other.blocks));
		return tokens / this.#rate() + (this.#current === undefined ? 0 : Math.max(0, this.#chunkEndsS - nowS(this.#time)));
	}

	send(served: Served): void {
		this.#queue.push(served);
		for (const block of served.request.blocks) this.#coming.set(block, (this.#coming.get(block) ?? 0) + 1);
		this.#advance();
	}

	#rate(): number {
		return this.#speed / (1 + (SLOWED * this.#decoding) / BATCH_MAX);
	}

	#advance(): void {
		if (this.#current !== undefined || this.#decoding >= BATCH_MAX) return;
		const next = this.#queue.shift();
		if (next === undefined) return;
		this.#current = next;
		const { request } = next;
		next.cachedTokens = Math.min(this.#cache.match(request.blocks) * BLOCK_TOKENS, request.promptTokens);
		this.hitTokens += next.cachedTokens;
		this.#left = Math.max(1, request.promptTokens - next.cachedTokens);
		this.#chunk();
	}

	#chunk(): void {
		const tokens = Math.min(this.#left, this.#kind.chunkTokens);
		const seconds = tokens / this.#rate();
		this.#left -= tokens;
		this.busyS += seconds;
		this.#chunkEndsS = nowS(this.#time) + seconds;
		this.#time.after(seconds * 1000, "chunk", () => (this.#left > 0 ? this.#chunk() : this.#first()));
	}

	#first(): void {
		const served = this.#current as Served;
		this.#current = undefined;
		this.#cache.use(served.request.blocks);
		for (const block of served.request.blocks) {
			const coming = (this.#coming.get(block) as number) - 1;
			if (coming === 0) this.#coming.delete(block);
			else this.#coming.set(block, coming);
		}
		served.first();
		this.#decoding += 1;
		const slowed = 1 + (SLOWED * this.#decoding) / BATCH_MAX;
		this.#time.after(served.request.outputTokens * TOKEN_S * slowed * 1000, "end", () => {
			this.#decoding -= 1;
			served.over();
			this.#advance();
		});
		this.#advance();
	}
}

function uncached({ promptTokens }: TraceRequest, blocks: number): number {
	return Math.max(1, promptTokens - blocks * BLOCK_TOKENS);
}

export function nowS(time: Timeline): number {
	return time.nowMs() / 1000;
}
