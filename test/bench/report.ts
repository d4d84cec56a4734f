/** Writes a run's figures as Markdown tables. */
import { BASELINE } from "./baseline.ts";
import type { Figure, Figures } from "./figures.ts";
import { ratioOf } from "./figures.ts";
import type { describeMachine } from "./machine.ts";
import { type Spread, spreadOf } from "./statistics.ts";
import type { BenchMode, Check } from "./world.ts";

export interface Run {
	readonly at: string;
	readonly machine: ReturnType<typeof describeMachine>;
	readonly postgres: string;
	readonly mode: BenchMode;
	readonly figures: Figures;
	readonly checks: readonly Check[];
	readonly seconds: number;
}

const PRODUCT = "tollgate";
const BARE = "bare Bun";

export function markdownOf(run: Run): string {
	const { machine, mode } = run;
	const failed = run.checks.filter(({ ok }) => !ok);
	return `# Benchmark

\`bun run bench\`, ${run.at}, ${Math.round(run.seconds)} s.

${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, Linux ${machine.kernel}; Bun ${machine.bun}, nginx ${machine.nginx ?? "not installed"}, PostgreSQL ${run.postgres}.
${machine.pinned[0]?.toUpperCase()}${machine.pinned.slice(1)}. Windows of ${mode.windowMs / 1000} s after a warm-up, ${mode.rounds} rounds of all gateways in turn: each cell is the median and, in brackets, the range.
Ratios are computed for each round. The product runs with authentication, reservation, journal, settlement and write-behind to PostgreSQL on.

## Figures

${figureTables(run.figures)}

## Checks

${run.checks.length} checks, ${failed.length === 0 ? "all hold" : `${failed.length} **do not hold**`}: every request got a 200 and every stream was complete. Every request that the model server answered is one row in PostgreSQL, the charges equal the server's token count at the model's rates, and the check of the books passes.
${failed.map(({ name, detail }) => `- **${name}**: ${detail}`).join("\n")}
`;
}

function figureTables(figures: Figures): string {
	const scenarios = [...new Set(figures.all.map(({ scenario }) => scenario))];
	return scenarios.map((scenario) => `### ${scenario}\n\n${figureTable(figures, scenario)}`).join("\n\n");
}

function figureTable(figures: Figures, scenario: string): string {
	const ofScenario = figures.all.filter((figure) => figure.scenario === scenario);
	const rows = [...new Set(ofScenario.map(({ row }) => row))];
	const names = [...new Set(ofScenario.map(({ name }) => name))];
	const compared = [BARE, BASELINE].filter((row) => rows.includes(row));
	const lines = names.map((name) => {
		const find = (row: string) => figures.find(scenario, name, row);
		const unit = ofScenario.find((figure) => figure.name === name)?.unit ?? "";
		const ratios = compared.map((row) => ratioOf(find(PRODUCT), find(row))).map((ratio) => (ratio ? cell(ratio) : ""));
		return `| ${name}, ${unit} | ${[...rows.map((row) => figureCell(find(row))), ...ratios].join(" | ")} |`;
	});
	const titles = [...rows, ...compared.map((row) => `${PRODUCT} ÷ ${row}`)];
	return `| | ${titles.join(" | ")} |\n|---|${titles.map(() => "--:|").join("")}\n${lines.join("\n")}`;
}

const figureCell = (figure: Figure | undefined) => (figure ? cell(spreadOf(figure.values)) : "");

function cell({ median, min, max, rounds }: Spread): string {
	return rounds === 1 ? numberText(median) : `${numberText(median)} [${numberText(min)}–${numberText(max)}]`;
}

export function numberText(value: number): string {
	const size = Math.abs(value);
	if (size > 0 && size < 0.1) return value.toFixed(3);
	if (size >= 100) return Math.round(value).toLocaleString("en-US");
	return size >= 10 ? value.toFixed(1) : value.toFixed(2);
}
