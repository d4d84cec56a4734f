/** Hand-written faults of SQL functions that the tests must detect. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutation } from "./mutations.ts";
import mutants from "./sql-mutants.json" with { type: "json" };

export interface SqlMutant {
	readonly breaks: string;
	/** The text to replace, which must occur exactly once in the file. */
	readonly before: string;
	readonly after: string;
	/** First seed of `bun run sim -- --sql` to try for this fault. */
	readonly sqlSeed?: number;
	/** True if `sqlSeed` finds the fault only with `--projects`. */
	readonly sqlProjects?: boolean;
}

/** Faults by file below `src/db/functions/`. */
export const SQL_MUTANTS: Readonly<Record<string, readonly SqlMutant[]>> = mutants;
const FOLDER = "src/db/functions/";

/** The faults as mutations of their files. Throws unless each text occurs exactly once. */
export function sqlMutations(root: string): Mutation[] {
	return Object.entries(SQL_MUTANTS).flatMap(([name, list]) => {
		const text = readFileSync(join(root, FOLDER, name), "utf8");
		return list.map(({ breaks, before, after }) => {
			const start = text.indexOf(before);
			if (start === -1 || text.includes(before, start + 1))
				throw new Error(`${FOLDER}${name} does not have once the text of the mutant: ${breaks}`);
			const line = text.slice(0, start).split("\n").length;
			return { file: FOLDER + name, line, change: breaks, start, end: start + before.length, replacement: after };
		});
	});
}
