/**
 * Breaks the source in one line after the other and runs what should notice it:
 *
 *   bun run mutants                 all of them
 *   bun run mutants -- WORD…        those whose file or rule contains one of the words
 *   bun run mutants -- --left       those that former runs did not see killed
 *   bun run mutants -- --tests      by tests alone, without the simulation, which takes the longest
 *
 * Ends with 1 if one survives. The table is `results.md`.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { testPostgres } from "../support/postgres.ts";
import { mutants } from "./list.ts";
import type { Killer, PlacedMutant } from "./mutant.ts";
import type { Result } from "./results.ts";
import { readResults, writeResults } from "./results.ts";
import { plantTree } from "./tree.ts";

const { values, positionals } = parseArgs({
	allowPositionals: true,
	options: { left: { type: "boolean", default: false }, tests: { type: "boolean", default: false } },
});
const results = readResults();
const usable = ({ killers }: PlacedMutant) => killers.filter((killer) => !values.tests || typeof killer === "string");
const chosen = mutants.filter(
	({ file, breaks, equivalent }) =>
		equivalent === undefined &&
		(positionals.length === 0 || positionals.some((word) => `${file} ${breaks}`.includes(word))) &&
		!(values.left && results.get(breaks)?.verdict === "killed"),
);

// Held for the whole run, so that no killer has to start it.
const database = await testPostgres();
const tree = plantTree(join(import.meta.dir, "../.."));
try {
	const broken = await healthCheck(chosen);
	for (const mutant of chosen) {
		const result = await tryMutant(mutant, (killer) => !broken.has(killer));
		results.set(mutant.breaks, result);
		console.log(`${result.verdict.padEnd(8)} ${mutant.file}: ${mutant.breaks}\n         ${result.by}`);
		writeResults(mutants, results);
	}
	process.exitCode = chosen.every(({ breaks }) => results.get(breaks)?.verdict === "killed") ? 0 : 1;
} finally {
	tree.remove();
	await database.stop();
}
writeResults(mutants, results);

/** What fails without a mutant proves nothing. */
async function healthCheck(some: readonly PlacedMutant[]): Promise<ReadonlySet<Killer>> {
	const broken = new Set<Killer>();
	for (const killer of new Set(some.flatMap(usable))) {
		const outcome = await tree.run(killer);
		if (outcome?.failed === false) continue;
		broken.add(killer);
		console.log(`fails on the source as it is: ${killer} (${outcome?.by ?? "no end"})`);
	}
	return broken;
}

async function tryMutant(mutant: PlacedMutant, isSound: (killer: Killer) => boolean): Promise<Result> {
	const heal = await tree.infect(mutant);
	try {
		let verdict: Result = { verdict: "survived", by: "" };
		for (const killer of usable(mutant).filter(isSound)) {
			const outcome = await tree.run(killer);
			if (outcome === null) verdict = { verdict: "no end", by: `${killer}` };
			if (outcome?.failed) return { verdict: "killed", by: `${killer}: ${outcome.by}` };
		}
		return verdict;
	} finally {
		await heal();
	}
}
