import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * What is expected to notice a mutant: a test file below `test/` without its ending (`cluster/gate`), or so many seeds of
 * the simulation. Cheapest first: the first that fails ends the search.
 */
export type Killer = string | number;

/** The life of an instance's lease, by itself and where the instance or its database is gone. */
export const INSTANCE_LEASE: readonly Killer[] = [
	"ledger/instance-lease",
	"ledger/left-behind",
	"ledger/lost-instance",
	"ledger/moved-database",
];

/** One line of the source, changed so that it breaks a rule. */
export interface Mutant {
	/** The rule as it is broken; names the mutant. */
	readonly breaks: string;
	/** Stands exactly once in the file. */
	readonly before: string;
	readonly after: string;
	/** In place of those of the file. */
	readonly killers?: readonly Killer[];
	/** Of a function: the seed with which the simulation of the SQL notices it too. One of the next where the product has changed. */
	readonly sqlSeed?: number;
	/** That seed is one of the world with projects. */
	readonly sqlProjects?: true;
	/** Why nothing can notice it, or nothing that is promised. It is not run. */
	readonly equivalent?: string;
}

export interface MutantsOfFile {
	/** Below `src/`. */
	readonly file: string;
	readonly killers: readonly Killer[];
	readonly mutants: readonly Mutant[];
}

export interface PlacedMutant extends Mutant {
	readonly file: string;
	readonly killers: readonly Killer[];
}

export function placed(files: readonly MutantsOfFile[]): PlacedMutant[] {
	return files.flatMap(({ file, killers, mutants }) => mutants.map((mutant) => ({ file, killers, ...mutant })));
}

/** The source with the mutant in it. Throws if its line is not found exactly once: the source has changed since. */
export function mutate(root: string, { file, breaks, before, after }: PlacedMutant): string {
	const text = readFileSync(join(root, "src", file), "utf8");
	const parts = text.split(before);
	if (parts.length !== 2)
		throw new Error(`src/${file} has ${parts.length - 1} times the line of the mutant: ${breaks}`);
	return parts.join(after);
}
