import { expect, test } from "bun:test";
import { testsMayTake } from "../support/at-end.ts";
import { mutants } from "./mutants.ts";
import { type SimResult, simulate } from "./simulate.ts";

testsMayTake(300_000);

/** Seeds that together cover all kinds of faults in little time. The long form, `bun run sim`, runs 10,000 seeds. */
const SEEDS = [[3], [33, 58]];
const SEEDS_OF_PROJECTS = [17, 33];
const SEEDS_OF_BACK = [2, 9];
const SEEDS_OF_CUTS = [3, 12, 23];
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

for (const seeds of SEEDS) {
	test(`the simulation keeps every invariant at every step (seeds ${seeds.join(", ")})`, () => {
		for (const seed of seeds) {
			const { failure } = run(seed);
			if (failure) throw new Error(`seed ${seed}: ${failure}; replay with bun test/sim/run.ts --seed ${seed}`);
		}
	});
}

test("the simulation keeps every invariant with projects", () => {
	const seen = new Map<string, number>();
	for (const seed of SEEDS_OF_PROJECTS) {
		const { failure, stats } = simulate(seed, { projects: true });
		if (failure) throw new Error(`seed ${seed}: ${failure}; replay with bun test/sim/run.ts --projects --seed ${seed}`);
		for (const [name, value] of Object.entries(stats)) seen.set(name, (seen.get(name) ?? 0) + value);
	}
	const expected = ["admitted on proj_acc1", "admitted on proj_acc2"];
	expect(expected.filter((name) => (seen.get(name) ?? 0) === 0)).toEqual([]);
});

test("the simulation admits no request on credit that a lowered limit took away", () => {
	let behind = 0;
	for (const seed of SEEDS_OF_CUTS) {
		const { failure, stats } = simulate(seed, { cuts: true });
		if (failure) throw new Error(`seed ${seed}: ${failure}; replay with bun test/sim/run.ts --cuts --seed ${seed}`);
		behind += stats["admitted behind a lowered limit"] ?? 0;
	}
	expect(behind).toBeGreaterThan(0);
});

test("the simulation loses no acknowledged request when the database goes back in time", () => {
	let unknown = 0;
	for (const seed of SEEDS_OF_BACK) {
		const { failure, stats } = simulate(seed, { back: true });
		if (failure) throw new Error(`seed ${seed}: ${failure}; replay with bun test/sim/run.ts --back --seed ${seed}`);
		unknown += stats["usage that the new server does not know"] ?? 0;
	}
	expect(unknown).toBeGreaterThan(0);
});

test("the simulation takes the same steps with the same seed", () => {
	const [seed, other] = [33, 58];
	const again = simulate(seed);
	expect(again.hash).toBe(run(seed).hash);
	expect(again.steps).toBe(run(seed).steps);
	expect(again.hash).not.toBe(run(other).hash);
});

test("the simulation's seeds cover all faults", () => {
	const seen = new Map<string, number>();
	for (const seed of SEEDS.flat()) {
		for (const [name, value] of Object.entries(run(seed).stats)) seen.set(name, (seen.get(name) ?? 0) + value);
	}
	const faults = [
		"kill",
		"power",
		"disk lost",
		"pause",
		"partition",
		"outage",
		"disk full",
		"stop",
		"clock jump",
		"join",
	];
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
	expect(expected.filter((name) => (seen.get(name) ?? 0) === 0)).toEqual([]);
});

for (const mutant of mutants) {
	test(`the simulation detects a fault: ${mutant.name}`, () => {
		const from = mutant.seed ?? 1;
		for (let nth = 0; nth < MUTANT_SEEDS_MAX; nth++)
			if (mutant.check.test(simulate(from + nth, { mutant }).failure ?? "")) return;
		throw new Error(`none of ${MUTANT_SEEDS_MAX} seeds found it`);
	});
}
