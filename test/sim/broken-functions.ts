import { SQL_MUTANTS, type SqlMutant } from "../mutants/sql-mutants.ts";
import { simulateSql } from "./simulate-sql.ts";

export type BrokenFunction = SqlMutant & { readonly file: string };

export const brokenFunctions: readonly BrokenFunction[] = Object.entries(SQL_MUTANTS).flatMap(([file, mutants]) =>
	mutants.map((mutant) => ({ file, ...mutant })),
);

/** Runs seeds until one detects the broken function. Returns that seed and its failure. */
export async function findBroken(
	{ file, before, after, sqlProjects }: BrokenFunction,
	from: number,
	count: number,
	projects = sqlProjects ?? false,
): Promise<{ seed: number; failure: string } | undefined> {
	const changed = { file, change: (text: string) => text.replace(before, () => after) };
	for (let seed = from; seed < from + count; seed++) {
		const { failure } = await simulateSql(seed, { changed, projects });
		if (failure !== undefined) return { seed, failure: failure.split("\n")[0] ?? "" };
	}
	return undefined;
}
