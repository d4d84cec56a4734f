/**
 * Compares policies of choosing a server by simulation, prints the table and writes it to `results.md`.
 *
 *     bun run routing                    Mooncake's conversation trace, about 15 minutes
 *     bun run routing --trace PATH       another trace in its format; prints only
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { POLICIES, type PolicyName } from "./policies.ts";
import { type Cell, type Result, simulate } from "./simulate.ts";
import { readConversation, readTrace, withoutSharedPrefixes } from "./trace.ts";

const NAMES = Object.keys(POLICIES) as PolicyName[];
const SERVERS = [2, 4, 8, 32];
const CACHES = [1_500, 3_000, 6_000];
/** Arrivals per server, as a multiple of the trace's arrivals with 8 servers. */
const RATES = [1, 1.5, 2];
const GATEWAYS = [1, 2, 4];
/** Number of tokens per chunk in which servers prefill prompts. */
const CHUNK_TOKENS = 2_048;
const PACKED = { servers: 8, cacheBlocks: 3_000, rate: 1.5 };

const { values: flags } = parseArgs({ options: { trace: { type: "string" } } });
const trace = flags.trace === undefined ? await readConversation() : await readTrace(flags.trace);

const lines = [
	"# Simulated choice of a server",
	"",
	`${trace.length.toLocaleString("en")} requests; time to first token in seconds. README.md has the method. \`former\` is the`,
	"product's rule until version 0.2. The load is the mean share of the time that servers prefill, with `former`.",
];

for (const gateways of GATEWAYS) {
	const figures = NAMES.map((name) => `${name}`);
	lines.push(
		"",
		`## Gateways: ${gateways}`,
		"",
		"Mean / 99th percentile by policy; p50, share of cached prompt tokens and imbalance of `product`.",
		"",
	);
	lines.push(`| servers | cache | rate | load | ${figures.join(" | ")} | p50 | hit | imbalance |`);
	lines.push(`|--:|--:|--:|--:|${"--:|".repeat(figures.length + 3)}`);
	for (const servers of SERVERS)
		for (const cacheBlocks of CACHES)
			for (const rate of RATES) {
				const results = resultsOf({
					servers,
					cacheBlocks,
					gateways,
					speed: (rate * servers) / 8,
					chunkTokens: CHUNK_TOKENS,
				});
				const { product, former } = results;
				const times = NAMES.map((name) => `${fixed(results[name].mean)} / ${fixed(results[name].p99)}`);
				const own = [fixed(product.p50), percent(product.hit), fixed(product.imbalance)];
				push([servers, cacheBlocks, rate, fixed(former.load), ...times, ...own]);
			}
}

lines.push("", `## All figures: ${PACKED.servers} servers, ${PACKED.cacheBlocks} blocks, rate ${PACKED.rate}`, "");
lines.push(
	"| prompts | gateways | prefill | policy | mean | p50 | p99 | hit | imbalance | load |",
	"|---|--:|---|---|--:|--:|--:|--:|--:|--:|",
);
const alone = withoutSharedPrefixes(trace);
for (const [prompts, requests, gateways, prefill, chunkTokens] of [
	["shared", trace, 1, "chunks", CHUNK_TOKENS],
	["shared", trace, 4, "chunks", CHUNK_TOKENS],
	["shared", trace, 1, "whole", Number.POSITIVE_INFINITY],
	["none shared", alone, 1, "chunks", CHUNK_TOKENS],
	["none shared", alone, 4, "chunks", CHUNK_TOKENS],
] as const) {
	const { servers, cacheBlocks, rate } = PACKED;
	const results = resultsOf({ servers, cacheBlocks, gateways, speed: rate, chunkTokens }, requests);
	for (const name of NAMES) {
		const { mean, p50, p99, hit, imbalance, load } = results[name];
		push([
			prompts,
			gateways,
			prefill,
			name,
			fixed(mean),
			fixed(p50),
			fixed(p99),
			percent(hit),
			fixed(imbalance),
			fixed(load),
		]);
	}
}
if (flags.trace === undefined) await Bun.write(join(import.meta.dir, "results.md"), `${lines.join("\n")}\n`);

function resultsOf(cell: Cell, requests = trace): Record<PolicyName, Result> {
	return Object.fromEntries(NAMES.map((name) => [name, simulate(requests, cell, POLICIES[name])])) as Record<
		PolicyName,
		Result
	>;
}

function push(cells: readonly (string | number)[]): void {
	const line = `| ${cells.join(" | ")} |`;
	lines.push(line);
	process.stdout.write(`${line}\n`);
}

function fixed(value: number): string {
	return value.toFixed(2);
}

function percent(share: number): string {
	return `${(100 * share).toFixed(1)} %`;
}
