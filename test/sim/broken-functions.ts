import { mutants } from "../mutants/list.ts";
import type { PlacedMutant } from "../mutants/mutant.ts";
import { simulateSql } from "./simulate-sql.ts";

const FUNCTIONS = "db/functions/";

/** Broken lines of the functions, but for those that nothing can notice. */
export const brokenFunctions: readonly PlacedMutant[] = mutants.filter(
	({ file, equivalent }) => file.startsWith(FUNCTIONS) && equivalent === undefined,
);

/** The first of so many seeds that finds it, and what it says. */
export async function findBroken(
	{ file, before, after, sqlProjects }: PlacedMutant,
	from: number,
	count: number,
	projects = sqlProjects ?? false,
): Promise<{ seed: number; failure: string } | undefined> {
	const changed = { file: file.slice(FUNCTIONS.length), change: (text: string) => text.replace(before, () => after) };
	for (let seed = from; seed < from + count; seed++) {
		const { failure } = await simulateSql(seed, { changed, projects });
		if (failure !== undefined) return { seed, failure: failure.split("\n")[0] ?? "" };
	}
	return undefined;
}
