/**
 * Compares policies of choosing a server by simulation, prints the table and writes it to `results.md`.
 *
 *     bun run routing                    Mooncake's conversation trace, about 15 minutes
 *     bun run routing --trace PATH       another trace in its format; prints only
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { POLICIES, type PolicyName } from "./policies.ts";
import { type Result, simulate } from "./simulate.ts";
import { readConversation, readTrace, withoutSharedPrefixes } from "./trace.ts";

const NAMES = Object.keys(POLICIES) as PolicyName[];
/** Arrivals per server are a multiple of the trace's at 8 servers. */
const CELLS = [2, 4, 8, 32].flatMap((servers) =>
	[1_500, 3_000, 6_000].flatMap((cacheBlocks) => [1, 1.5, 2].map((rate) => ({ servers, cacheBlocks, rate }))),
);
/** With the most that the product's mean and 99th percentile may be, as multiples of the oracle's. */
const GATEWAYS = [
	{ gateways: 1, mean: 1.25, p99: 1.2 },
	{ gateways: 2, mean: 1.5, p99: 1.4 },
	{ gateways: 4, mean: 1.5, p99: 1.4 },
];
/** Number of tokens per chunk in which servers prefill prompts. */
const CHUNK_TOKENS = 2_048;
const PACKED = { servers: 8, cacheBlocks: 3_000, rate: 1.5 };
const MEASURES = ["mean", "p50", "p99", "hit", "imbalance", "load"] as const;

const { values: flags } = parseArgs({ options: { trace: { type: "string" } } });
const trace = flags.trace === undefined ? await readConversation() : await readTrace(flags.trace);
const alone = withoutSharedPrefixes(trace);

function resultsOf(
	{ servers, cacheBlocks, rate }: typeof PACKED,
	gateways: number,
	{ requests = trace, chunkTokens = CHUNK_TOKENS } = {},
) {
	const cell = { servers, cacheBlocks, gateways, speed: (rate * servers) / 8, chunkTokens };
	const all = NAMES.map((name) => [name, simulate(requests, cell, POLICIES[name])] as const);
	return Object.fromEntries(all) as Record<PolicyName, Result>;
}

const fixed = (value: number) => value.toFixed(2);
const shown = (result: Result, measure: (typeof MEASURES)[number]) =>
	measure === "hit" ? `${(100 * result.hit).toFixed(1)} %` : fixed(result[measure]);

function row(cells: readonly (string | number)[]): string {
	const line = `| ${cells.join(" | ")} |`;
	process.stdout.write(`${line}\n`);
	return line;
}

const tables: string[] = [];
const goals: string[] = [];
for (const { gateways, mean, p99 } of GATEWAYS) {
	const columns = ["servers", "cache", "rate", "load", ...NAMES, "p50", "hit", "imbalance"];
	tables.push("", `## Gateways: ${gateways}`, "", row(columns), row(columns.map(() => "--:")));
	const seen = CELLS.map((cell) => {
		const results = resultsOf(cell, gateways);
		const { product, former } = results;
		const times = NAMES.map((name) => `${fixed(results[name].mean)} / ${fixed(results[name].p99)}`);
		const own = (["p50", "hit", "imbalance"] as const).map((measure) => shown(product, measure));
		tables.push(row([cell.servers, cell.cacheBlocks, cell.rate, fixed(former.load), ...times, ...own]));
		return results;
	});
	const ratios = (of: "mean" | "p99", most: number) => {
		const all = seen.map(({ product, oracle }) => product[of] / oracle[of]).sort((a, b) => a - b);
		const met = all.filter((ratio) => ratio <= most).length;
		return `≤ ${most}: ${met} of ${all.length} (${fixed(all[0] as number)}–${fixed(all.at(-1) as number)})`;
	};
	const busy = seen.filter(({ former }) => former.load > 0.5);
	const missed = busy.filter(({ product, former }) => product.mean > 0.65 * former.mean);
	const oracles = missed.filter(({ oracle, former }) => oracle.mean > 0.65 * former.mean).length;
	const below = `${busy.length - missed.length} of ${busy.length}; the oracle misses ${oracles} of the other ${missed.length}`;
	const imbalance = fixed(Math.max(...seen.map(({ product }) => product.imbalance)));
	goals.push(row([gateways, ratios("mean", mean), ratios("p99", p99), below, imbalance]));
}

tables.push("", `## All figures: ${PACKED.servers} servers, ${PACKED.cacheBlocks} blocks, rate ${PACKED.rate}`, "");
const columns = ["prompts", "gateways", "prefill", "policy", ...MEASURES];
tables.push(row(columns), row(columns.map(() => "---")));
for (const [prompts, requests, gateways, prefill, chunkTokens] of [
	["shared", trace, 1, "chunks", CHUNK_TOKENS],
	["shared", trace, 4, "chunks", CHUNK_TOKENS],
	["shared", trace, 1, "whole", Number.POSITIVE_INFINITY],
	["none shared", alone, 1, "chunks", CHUNK_TOKENS],
	["none shared", alone, 4, "chunks", CHUNK_TOKENS],
] as const) {
	const results = resultsOf(PACKED, gateways, { requests: [...requests], chunkTokens });
	for (const name of NAMES)
		tables.push(row([prompts, gateways, prefill, name, ...MEASURES.map((measure) => shown(results[name], measure))]));
}

const head = `# Simulated choice of a server

${trace.length.toLocaleString("en")} requests; times to the first token in seconds. [README.md](README.md) has the method.

## Goals

Mean and 99th percentile of \`product\` as multiples of the oracle's: cells within the goal, and the range. 35 % below the
mean of \`former\`: cells where servers prefill more than half of the time with \`former\`. Imbalance: the largest.

| gateways | mean | 99th percentile | 35 % below \`former\` | imbalance |
|--:|---|---|---|--:|
${goals.join("\n")}

The tables below have the mean / 99th percentile of each policy, and the median, share of cached prompt tokens and
imbalance of \`product\`. The load is the mean share of the time that servers prefill, with \`former\`.
`;
if (flags.trace === undefined) await Bun.write(join(import.meta.dir, "results.md"), `${head}${tables.join("\n")}\n`);
