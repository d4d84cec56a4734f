import { expect, test } from "bun:test";
import { testsMayTake } from "../support/at-end.ts";
import { mutants } from "./mutants.ts";
import { type SimResult, simulate } from "./simulate.ts";

testsMayTake(300_000);

/** Seeds that together cover all kinds of faults in little time. The long form, `bun run sim`, runs 10,000 seeds. */
const SEEDS = [[3], [33, 58]];
const MUTANT_SEEDS_MAX = 600;

const results = new Map<number, SimResult>();

/** Runs each seed once and caches its result for all tests. */
function run(seed: number): SimResult {
	let result = results.get(seed);
	if (!result) {
		result = simulate(seed);
		results.set(seed, { ...result, recent: [] });
	}
	return result;
}

function keptBy(seed: number, { failure, stats }: SimResult, option = "") {
	if (failure) throw new Error(`seed ${seed}: ${failure}; replay with bun test/sim/run.ts${option} --seed ${seed}`);
	return stats;
}

function expectCounted(all: readonly SimResult["stats"][], names: readonly string[]) {
	expect(names.filter((name) => all.every((stats) => (stats[name] ?? 0) === 0))).toEqual([]);
}

for (const seeds of SEEDS) {
	test(`the simulation keeps every invariant at every step (seeds ${seeds.join(", ")})`, () => {
		for (const seed of seeds) keptBy(seed, run(seed));
	});
}

/** Runs with one more kind of act, and the counts that show that it happened. */
const OPTIONS = [
	["keeps every invariant with projects", "projects", [17, 33], ["admitted on proj_acc1", "admitted on proj_acc2"]],
	[
		"admits no request on credit that a lowered limit took away",
		...(["cuts", [3, 12, 23], ["admitted behind a lowered limit"]] as const),
	],
	[
		"loses no acknowledged request when the database goes back in time",
		...(["back", [2, 9], ["usage that the new server does not know"]] as const),
	],
] as const;

test.each(OPTIONS)("the simulation %s", (_, option, seeds, expected) => {
	const kept = (seed: number) => keptBy(seed, simulate(seed, { [option]: true }), ` --${option}`);
	expectCounted(seeds.map(kept), expected);
});

test("the simulation takes the same steps with the same seed", () => {
	const [seed, other] = [33, 58];
	const again = simulate(seed);
	expect(again.hash).toBe(run(seed).hash);
	expect(again.steps).toBe(run(seed).steps);
	expect(again.hash).not.toBe(run(other).hash);
});

test("the simulation's seeds cover all faults", () => {
	const faults = "kill|power|disk lost|pause|partition|outage|disk full|stop|clock jump|join".split("|");
	const expected = [
		...faults.map((name) => `fault: ${name} host`),
		"fault: kill after ADMIT",
		"fault: kill after PROGRESS",
		"fault: kill after SETTLE",
		"fault: kill between commit and reply",
		"fault: damaged journal",
		"fault: replaced while stopped",
		"attested",
		"refused",
		"refusals checked",
		"revoked",
		"settled",
	];
	expectCounted(
		SEEDS.flat().map((seed) => run(seed).stats),
		expected,
	);
});

for (const mutant of mutants) {
	test(`the simulation detects a fault: ${mutant.name}`, () => {
		const from = mutant.seed ?? 1;
		for (let nth = 0; nth < MUTANT_SEEDS_MAX; nth++)
			if (mutant.check.test(simulate(from + nth, { mutant }).failure ?? "")) return;
		throw new Error(`none of ${MUTANT_SEEDS_MAX} seeds found it`);
	});
}
