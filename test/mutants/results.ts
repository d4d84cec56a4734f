import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PlacedMutant } from "./mutant.ts";

/** What became of one mutant. */
export interface Result {
	readonly verdict: "killed" | "survived" | "equivalent" | "no end";
	/** The test or seed that noticed it; why it is equivalent. */
	readonly by: string;
}

const PATH = join(import.meta.dir, "results.md");
const ROW =
	/^\| `(?<file>[^`]+)` \| (?<breaks>.+?) \| (?<verdict>killed|survived|equivalent|no end|not run) \| (?<by>.*) \|$/;

/** Behind what noticed it, with the seed. */
const OF_SQL = "; simulation of the SQL: seed ";

const cell = (text: string) => text.replaceAll("|", "\\|").replaceAll("\n", " ").slice(0, 200);

/** The results of former runs, by what the mutant breaks. */
export function readResults(): Map<string, Result> {
	const results = new Map<string, Result>();
	if (!existsSync(PATH)) return results;
	for (const line of readFileSync(PATH, "utf8").split("\n")) {
		const { breaks, verdict, by } = ROW.exec(line)?.groups ?? {};
		if (breaks === undefined || by === undefined || verdict === "not run") continue;
		results.set(breaks, { verdict: verdict as Result["verdict"], by: by.split(OF_SQL)[0] ?? "" });
	}
	return results;
}

export function writeResults(mutants: readonly PlacedMutant[], results: ReadonlyMap<string, Result>): void {
	const of = ({ breaks, equivalent }: PlacedMutant): Result | undefined =>
		equivalent === undefined ? results.get(breaks) : { verdict: "equivalent", by: equivalent };
	const count = (verdict: Result["verdict"]) => mutants.filter((mutant) => of(mutant)?.verdict === verdict).length;
	const rows = mutants.map((mutant) => {
		const { verdict = "not run", by = "" } = of(mutant) ?? {};
		const bySeed =
			mutant.sqlSeed === undefined ? "" : `${OF_SQL}${mutant.sqlSeed}${mutant.sqlProjects ? " with projects" : ""}`;
		return `| \`src/${mutant.file}\` | ${cell(mutant.breaks)} | ${verdict} | ${verdict === "equivalent" ? by : cell(by)}${bySeed} |`;
	});
	writeFileSync(
		PATH,
		`# Mutants of the source

Written by \`bun run mutants\`, which puts each of these lines into a copy of the source and runs what should notice it.
${mutants.length} mutants: ${count("killed")} killed, ${count("survived")} survived, ${count("equivalent")} equivalent.

| file | the rule as it is broken | | noticed by, or why nothing can |
|---|---|---|---|
${rows.join("\n")}
`,
	);
}
