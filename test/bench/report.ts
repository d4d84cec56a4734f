/** A run's figures as a Markdown table and as JSON. */
import type { Figure, Figures } from "./figures.ts";
import { ratioOf } from "./figures.ts";
import type { Machine } from "./machine.ts";
import { type Spread, spreadOf } from "./statistics.ts";
import type { BenchMode, Check } from "./world.ts";

export interface Run {
	/** ISO time of the start. */
	readonly at: string;
	readonly machine: Machine;
	readonly postgres: string;
	readonly mode: BenchMode;
	readonly figures: Figures;
	readonly checks: readonly Check[];
	readonly seconds: number;
}

/** What the project wants to reach: the product's figure against another row's, or as it is. */
interface Goal {
	readonly scenario: string;
	readonly name: string;
	readonly against: string | null;
	/** Where it stood when the goal was set. */
	readonly now: string;
	readonly goal: number;
	readonly stretch: number;
	/** What `bun run bench --` is given to measure it, if that is not the scenario's name. */
	readonly command?: string;
	/** True where more is better. */
	readonly atLeast?: boolean;
}

const COLUMNS_MAX = 7;
const PRODUCT = "tollgate";
/** The least that keeps the promises: `promise-floor.ts`. */
const FLOOR = "floor";
const BARE = "bare Bun";
const READING = "bare Bun, reading";
const HALF_LOAD = "plain at 50 %: added p99";
const YOUNG_STOP_MEDIAN = "young collection, longest stop, median";
const YOUNG_STOP_P99 = "young collection, longest stop, p99";
const SMALL = "CPU per request, small prompt";
/** In the order in which they were set, after the first full run of 2026-11-21. */
const GOALS: readonly Goal[] = [
	{ scenario: "plain", name: SMALL, against: BARE, now: "3.0–3.6", goal: 2, stretch: 1.6 },
	{ scenario: "plain", name: SMALL, against: "nginx", now: "5.9–8.2", goal: 4, stretch: 3 },
	{ scenario: "plain", name: SMALL, against: "Portkey", now: "0.083", goal: 1 / 20, stretch: 1 / 30 },
	{ scenario: "collections", name: "garbage a request", against: null, now: "20–30", goal: 7, stretch: 5 },
	{ scenario: "collections", name: YOUNG_STOP_MEDIAN, against: null, now: "2.8", goal: 0.7, stretch: 0.4 },
	{ scenario: "collections", name: YOUNG_STOP_P99, against: null, now: "10", goal: 2, stretch: 1 },
	{
		scenario: "latency",
		name: "added p99 at concurrency 1",
		against: "nginx",
		now: "4.1–4.9",
		goal: 2.5,
		stretch: 1.5,
	},
	{ scenario: "open", command: "half", name: HALF_LOAD, against: "nginx", now: "?", goal: 3, stretch: 2 },
	{ scenario: "first", name: "added time to first token, p99", against: "nginx", now: "4.6–6.0", goal: 3, stretch: 2 },
	{ scenario: "stream", name: "CPU per event", against: READING, now: "1.4", goal: 1.2, stretch: 1.1 },
	{
		scenario: "memory",
		name: "memory per open stream, 5,000 open",
		against: null,
		now: "32",
		goal: 22,
		stretch: 16,
	},
	{
		scenario: "memory",
		name: "more memory than before, all ended",
		against: null,
		now: "180",
		goal: 40,
		stretch: 15,
	},
	{
		scenario: "plain",
		name: "CPU per request, 1 MB prompt",
		against: BARE,
		now: "1.9–2.6",
		goal: 1.5,
		stretch: 1.2,
	},
	{
		scenario: "settle",
		name: "settlements to Postgres",
		against: null,
		now: "38,000",
		goal: 80_000,
		stretch: 120_000,
		atLeast: true,
	},
	{ scenario: "keys", name: "memory of a key in use", against: null, now: "7,000", goal: 2_000, stretch: 1_000 },
];

export function markdownOf(run: Run): string {
	const { machine, mode } = run;
	const failed = run.checks.filter(({ ok }) => !ok);
	return `# Benchmark of ${run.at.slice(0, 10)}

\`bun run bench${mode.preset === "" ? "" : ` -- --${mode.preset}`}\`, ${run.at}, ${Math.round(run.seconds)} s${mode.fromSource ? ", **from source, not the binary that ships**" : ""}.

${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, Linux ${machine.kernel}; Bun ${machine.bun}, nginx ${machine.nginx ?? "not installed"}, PostgreSQL ${run.postgres}, wrk ${machine.wrk ?? "not installed"}.
${machine.pinned[0]?.toUpperCase()}${machine.pinned.slice(1)}. Windows of ${mode.windowMs / 1000} s behind a warm-up, ${mode.rounds} rounds, interleaved: each cell is the median and, in brackets, the range.
Ratios are taken round by round. The product runs with authentication, reservation, journal, settlement and write-behind to PostgreSQL on.

## Goals

${goalTable(run.figures)}

## Figures

${figureTables(run.figures)}

## Checks

${run.checks.length} checks, ${failed.length === 0 ? "all hold" : `${failed.length} **do not hold**`}: every request answered with 200, every stream whole, no failure; every request that the upstream served is one row in PostgreSQL, the sum of all charges is the upstream's own count at the model's rates, the books reconcile.
${failed.map(({ name, detail }) => `- **${name}**: ${detail}`).join("\n")}
`;
}

function goalTable(figures: Figures): string {
	const withFloor = figures.all.some(({ row }) => row === FLOOR);
	const rows = GOALS.flatMap((goal) => {
		const product = figures.find(goal.scenario, goal.name, PRODUCT);
		if (!product) return [];
		const against = goal.against === null ? undefined : figures.find(goal.scenario, goal.name, goal.against);
		const spreadFor = (figure: Figure) => (goal.against === null ? spreadOf(figure.values) : ratioOf(figure, against));
		const spread = spreadFor(product);
		if (!spread) return [];
		const floor = figures.find(goal.scenario, goal.name, FLOOR);
		const least = floor && spreadFor(floor);
		const reached = (limit: number) => (goal.atLeast ? spread.median >= limit : spread.median <= limit);
		const word = reached(goal.stretch) ? "stretch" : reached(goal.goal) ? "goal" : "**no**";
		const name = goal.against === null ? `${goal.name}, ${product.unit}` : `${goal.name} ÷ ${goal.against}`;
		const sign = goal.atLeast ? "≥" : "≤";
		const limits = `${sign} ${numberText(goal.goal)} | ${sign} ${numberText(goal.stretch)}`;
		const command = `\`bench -- ${goal.command ?? goal.scenario}\``;
		return [
			`| ${name} | ${goal.now} | ${limits} | ${cell(spread)} | ${word} |${withFloor ? floorCells(spread, least) : ""} ${command} |`,
		];
	});
	const [titles, lines] = withFloor ? [" floor | distance |", "--:|--:|"] : ["", ""];
	const head = `| figure | when set | goal | stretch | measured | reached |${titles} measured by |
|---|--:|--:|--:|--:|---|${lines}---|`;
	return rows.length === 0 ? "None of them was measured." : `${head}\n${rows.join("\n")}`;
}

/** How far the product is from the floor; not where a short window of the floor saw none, or less than nothing. */
function floorCells({ median }: Spread, floor: Spread | undefined): string {
	if (floor === undefined) return " | |";
	return ` ${cell(floor)} | ${floor.median > 0 ? `${numberText(median / floor.median)} ×` : ""} |`;
}

function figureTables(figures: Figures): string {
	const scenarios = [...new Set(figures.all.map(({ scenario }) => scenario))];
	return scenarios.map((scenario) => `### ${scenario}\n\n${figureTable(figures, scenario)}`).join("\n\n");
}

function figureTable(figures: Figures, scenario: string): string {
	const ofScenario = figures.all.filter((figure) => figure.scenario === scenario);
	const rows = [...new Set(ofScenario.map(({ row }) => row))];
	const names = [...new Set(ofScenario.map(({ name }) => name))];
	const withRatio = rows.includes(BARE);
	if (rows.length > COLUMNS_MAX) return tallTable(figures, scenario, rows, names);
	const lines = names.map((name) => {
		const find = (row: string) => figures.find(scenario, name, row);
		const unit = ofScenario.find((figure) => figure.name === name)?.unit ?? "";
		const ratio = ratioOf(find(PRODUCT), find(BARE));
		const cells = rows.map((row) => figureCell(find(row)));
		return `| ${name}, ${unit} | ${cells.join(" | ")} |${withRatio ? ` ${ratio ? cell(ratio) : ""} |` : ""}`;
	});
	const head = `| | ${rows.join(" | ")} |${withRatio ? ` ${PRODUCT} ÷ ${BARE} |` : ""}`;
	return `${head}\n|---|${rows.map(() => "--:|").join("")}${withRatio ? "--:|" : ""}\n${lines.join("\n")}`;
}

/** One line a row instead of one column. */
function tallTable(figures: Figures, scenario: string, rows: readonly string[], names: readonly string[]): string {
	const titles = names.map((name) => {
		const unit = figures.all.find((figure) => figure.scenario === scenario && figure.name === name)?.unit ?? "";
		return `${name}, ${unit}`;
	});
	const lines = rows.map(
		(row) => `| ${row} | ${names.map((name) => figureCell(figures.find(scenario, name, row))).join(" | ")} |`,
	);
	return `| | ${titles.join(" | ")} |\n|---|${names.map(() => "--:|").join("")}\n${lines.join("\n")}`;
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

export function jsonOf(run: Run): string {
	const figures = run.figures.all.map(({ values, ...figure }) => ({ ...figure, ...spreadOf(values), values }));
	return `${JSON.stringify({ ...run, figures }, null, "\t")}\n`;
}
