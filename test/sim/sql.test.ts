import { expect, test } from "bun:test";
import { testsMayTake } from "../support/at-end.ts";
import { brokenFunctions, findBroken } from "./broken-functions.ts";
import { simulateSql } from "./simulate-sql.ts";

testsMayTake(300_000);

/** A short seed in which all faults happen. The long form is `bun run sim -- --sql --seeds 200`. */
const SEEDS = [28];
/** Broken functions that the first seeds detect. The long form is `bun run sim -- --sql --mutants --seeds 20`. */
const BROKEN = ["a closed lease gives back what was spent", "settlements are not added to their lease"];
const BROKEN_SEEDS_MAX = 20;
const KINDS_OF_FAULTS_MIN = 6;

test("the simulation keeps every invariant with the real functions on PostgreSQL", async () => {
	const seen = new Set<string>();
	for (const seed of SEEDS) {
		const { failure, stats } = await simulateSql(seed);
		if (failure) throw new Error(`seed ${seed}: ${failure}; replay with bun test/sim/run.ts --sql --seed ${seed}`);
		for (const what of Object.keys(stats)) seen.add(what);
	}
	expect(["settled", "refused", "revoked", "ended by another end"].filter((what) => !seen.has(what))).toEqual([]);
	// If this fails after a change of the product's statements, choose another seed, because a seed's faults change with
	// them.
	expect([...seen].filter((what) => what.startsWith("fault: ")).length).toBeGreaterThanOrEqual(KINDS_OF_FAULTS_MIN);
});

for (const breaks of BROKEN) {
	test(`the simulation detects a broken line of a SQL function: ${breaks}`, async () => {
		const mutant = brokenFunctions.find((one) => one.breaks === breaks);
		if (mutant?.sqlSeed === undefined) throw new Error("no such line, or no seed that found it");
		expect(await findBroken(mutant, mutant.sqlSeed, BROKEN_SEEDS_MAX)).toBeDefined();
	});
}
