/** The figures of two sizes as a table in Markdown. */
import type { Machine } from "../machine.ts";
import { numberText } from "../report.ts";
import type { Cost } from "./counted.ts";
import type { SizeFigures } from "./measure.ts";

export interface SizeRun {
	readonly at: string;
	readonly machine: Machine;
	readonly small: SizeFigures;
	readonly large: SizeFigures;
}

export function sizeTable({ at, machine, small, large }: SizeRun): string {
	const head = (figures: SizeFigures) =>
		`${(figures.notes["settled requests"]?.value ?? 0).toLocaleString("en-US")} requests of ${figures.filled.days} days, ${figures.filled.size.accounts.toLocaleString("en-US")} accounts with two keys each, ${(2 * figures.filled.size.accounts).toLocaleString("en-US")} leases of one epoch`;
	const costs = Object.entries(large.costs).flatMap(([name, cost]) => {
		const before = small.costs[name];
		if (before === undefined) return [];
		const pair = (of: (cost: Cost) => number) => `${numberText(of(before))} | ${numberText(of(cost))}`;
		return [
			`| ${name} | ${pair(({ pages }) => pages)} | ${numberText(cost.pages / Math.max(1, before.pages))} | ${pair(({ statements }) => statements)} | ${pair(({ walBytes }) => walBytes)} | ${pair(({ ms }) => ms)} |`,
		];
	});
	const notes = Object.entries(large.notes).flatMap(([name, { unit, value }]) => {
		const before = small.notes[name];
		return before === undefined ? [] : [`| ${name}, ${unit} | ${numberText(before.value)} | ${numberText(value)} |`];
	});
	return `# Years of books

${at.slice(0, 10)}, ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB; PostgreSQL ${large.postgres}, its settings as they come, everything on one machine, beside other work: times are no more than an
order of magnitude, counts are exact. \`bun run bench:size\` makes it.

- A: ${head(small)}
- B: ${head(large)}

Both have the same day; B has the longer history and more customers. Pages of 8 KB are those that statements looked at,
in memory or not.

| | pages, A | pages, B | B ÷ A | statements, A | statements, B | WAL bytes, A | WAL bytes, B | ms, A | ms, B |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
${costs.join("\n")}

| | A | B |
|---|--:|--:|
${notes.join("\n")}
`;
}
