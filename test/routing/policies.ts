/** The policies by which a gateway chooses a server, to be compared. */
import { createPool } from "../../src/upstream/replicas/pool.ts";
import { charsOfBlocks, countBlocks, type RoutedPrompt } from "../../src/upstream/replicas/prompt-prefix.ts";
import { createReplica } from "../../src/upstream/replicas/replica.ts";
import type { Ticket } from "../../src/upstream/replicas/ticket.ts";
import { limitsWith } from "../support/upstream-catalog.ts";
import { Cache } from "./servers.ts";
import type { Policy, PolicyWorld } from "./simulate.ts";
import { BLOCK_TOKENS, type TraceRequest } from "./trace.ts";

const CHARS_A_TOKEN = 4;
const PLACES = 256;

/** Index of the smallest value, searched from index `from`. */
function smallest(values: readonly number[], from = 0): number {
	let best = from % values.length;
	for (let step = 1; step < values.length; step += 1) {
		const at = (from + step) % values.length;
		if ((values[at] as number) < (values[best] as number)) best = at;
	}
	return best;
}

function createCounter(): () => number {
	let count = 0;
	return () => count++;
}

/** The product's former policy: rendezvous hashing by the first two blocks, unless that server is 25 % busier. */
function former(): Policy {
	const turn = createCounter();
	return {
		choose({ blocks }, busy) {
			const key = blocks.slice(0, 2).join(",");
			const weights = busy.map((_, at) => -Number(Bun.hash.wyhash(`${key}\n${at}`)));
			const [preferred, least] = [smallest(weights), smallest(busy, turn())];
			return (busy[preferred] as number) <= (busy[least] as number) + 0.25 * PLACES ? preferred : least;
		},
	};
}

/**
 * SGLang's router. If the load is unbalanced, it chooses the least busy server. Otherwise it chooses the server with
 * the longest cached prefix if that is over half of the prompt, else the server with the fewest cached blocks.
 */
function sglang({ servers, cacheBlocks }: PolicyWorld): Policy {
	const trees = servers.map(() => new Cache(cacheBlocks));
	return {
		choose({ blocks }, busy) {
			const [most, fewest] = [Math.max(...busy), Math.min(...busy)];
			const matches = trees.map((tree) => -tree.match(blocks));
			const best = smallest(matches);
			let chosen = best;
			if (most - fewest > 32 && most > 1.1 * fewest) chosen = smallest(busy);
			else if (-(matches[best] as number) <= 0.5 * blocks.length) chosen = smallest(trees.map(({ size }) => size));
			trees[chosen]?.use(blocks);
			return chosen;
		},
	};
}

/** Weights of llm-d's scorer: three for the matched share, two for the free share. */
function llmd({ servers, cacheBlocks }: PolicyWorld): Policy {
	const trees = servers.map(() => new Cache(cacheBlocks));
	return {
		choose({ blocks }, busy) {
			const most = Math.max(1, ...busy);
			const chosen = smallest(
				trees.map((tree, at) => (-3 * tree.match(blocks)) / blocks.length + (2 * (busy[at] as number)) / most),
			);
			trees[chosen]?.use(blocks);
			return chosen;
		},
	};
}

/** The product's real pool and replicas. */
function product({ servers, nowS }: PolicyWorld): Policy {
	const clock = { monotonicMs: () => nowS() * 1000, wallMs: () => nowS() * 1000, after: () => () => {} };
	const limits = limitsWith({ accountShare: 1 });
	const spec = { apiKey: null, model: "m", dialect: "vllm", maxConcurrency: PLACES, keepAlive: true } as const;
	const replicas = servers.map((_, at) =>
		createReplica(
			{ clock },
			{ modelId: "m", alias: `m#${at}`, spec: { ...spec, url: `http://m${at}/v1` }, limits: () => limits },
		),
	);
	const pool = createPool({ clock }, { limits: () => limits });
	pool.replace(replicas);
	const { signal } = new AbortController();
	let ticket: Ticket;
	let promptTokens: number;
	return {
		choose(request) {
			const place = pool.acquire({ routed: routedOf(request), exclude: new Set(), signal, accountId: "a" });
			if (place instanceof Promise) throw new Error("the simulated load needs more places");
			ticket = place;
			promptTokens = request.promptTokens;
			return replicas.indexOf(place.replica);
		},
		sent() {
			const [mine, tokens] = [ticket, promptTokens];
			return {
				first: () => mine.answered(),
				over(cachedTokens) {
					const usage = { promptTokens: tokens, completionTokens: 1, cachedTokens, reasoningTokens: 0 };
					mine.replica.noteUsage(usage);
					mine.release("ok", usage);
				},
			};
		},
	};
}

const routed = new WeakMap<TraceRequest, RoutedPrompt>();

/** The hashes of a prompt with four characters per token, computed without writing that text. */
function routedOf(request: TraceRequest): RoutedPrompt {
	const known = routed.get(request);
	if (known !== undefined) return known;
	const chars = request.promptTokens * CHARS_A_TOKEN;
	const hashes = new Uint32Array(countBlocks(chars));
	let hash = 0;
	for (let at = 0, block = 0; at < hashes.length; at += 1) {
		for (const end = charsOfBlocks(at + 1) / CHARS_A_TOKEN / BLOCK_TOKENS; block < end; block += 1)
			hash = Bun.hash.xxHash32(String(request.blocks[block]), hash);
		hashes[at] = Bun.hash.xxHash32(String(at), hash);
	}
	const prompt = { chars, hashes, streamed: true };
	routed.set(request, prompt);
	return prompt;
}

/** Policies by name, in the order of the table. */
export const POLICIES = {
	"round robin"({ random, servers }: PolicyWorld): Policy {
		const turn = createCounter();
		const start = random.int(0, servers.length - 1);
		return { choose: () => (start + turn()) % servers.length };
	},
	"least busy"(): Policy {
		const turn = createCounter();
		return { choose: (_, busy) => smallest(busy, turn()) };
	},
	"two choices": ({ random }: PolicyWorld): Policy => ({
		choose(_, busy) {
			const [one, other] = [0, 0].map(() => random.int(0, busy.length - 1)) as [number, number];
			return (busy[one] as number) <= (busy[other] as number) ? one : other;
		},
	}),
	SGLang: sglang,
	"llm-d": llmd,
	former,
	product,
	/** Policy that knows every cache and queue, as a lower limit for all others. */
	oracle({ servers }: PolicyWorld): Policy {
		const turn = createCounter();
		return {
			choose: (request) =>
				smallest(
					servers.map((server) => server.outlookS(request)),
					turn(),
				),
		};
	},
} satisfies Record<string, (world: PolicyWorld) => Policy>;

export type PolicyName = keyof typeof POLICIES;
