/**
 * Measures the product as it ships against the floors of its runtime and of the machine.
 *
 *     bun run bench                                all scenarios, windows of 6 s: about half an hour
 *     bun run bench -- --quick                     the main ones, short windows: about two minutes
 *     bun run bench -- --goals                     what the goals are measured by: about seven minutes
 *     bun run bench -- --floors                    the goals beside the least that keeps the promises: about five minutes
 *     bun run bench -- --users                     what users feel, and what it costs: about nine minutes
 *     bun run bench -- plain stream --quick        only these
 *     bun run bench -- plain --source              the source instead of the compiled binary
 *     … --rounds 5 --window 3                      other rounds and windows (s)
 *     … --streams 2000                             so many people at once in `day` and `tokens` (1,000)
 *
 * A run over all scenarios writes `results/<date>.{md,json}`, `results/latest.md` and `results/growth.svg`; `--quick`,
 * `--goals`, `--floors` and `--users` write `results/<date>-<option>.{md,json}`; any other one prints only.
 * nginx, wrk and Portkey appear where they are installed, LiteLLM where its folder is given (README.md). Exit code 1 if a check of the run's own results does not hold.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { collections } from "./collections.ts";
import { costOfTokens } from "./cost-of-tokens.ts";
import { day } from "./day.ts";
import type { Figures } from "./figures.ts";
import { createFigures } from "./figures.ts";
import { floors } from "./floors.ts";
import { grants } from "./grants.ts";
import { growth } from "./growth.ts";
import { keys } from "./keys.ts";
import { latency } from "./latency.ts";
import { describeMachine, moveToCore } from "./machine.ts";
import { memory } from "./memory.ts";
import { halfLoad, openLoop } from "./open-loop.ts";
import { plain } from "./plain.ts";
import { growthSvg } from "./plot.ts";
import { jsonOf, markdownOf } from "./report.ts";
import { revocations } from "./revocations.ts";
import { scheduling } from "./scheduling.ts";
import { settle } from "./settle.ts";
import { startUp } from "./start-up.ts";
import { first, stream } from "./stream.ts";
import { workers } from "./workers.ts";
import type { BenchMode, World } from "./world.ts";
import { startWorld } from "./world.ts";
import { wrk } from "./wrk.ts";

const SCENARIOS: Readonly<Record<string, (world: World, figures: Figures) => Promise<void>>> = {
	plain,
	stream,
	collections,
	keys,
	floors,
	day,
	tokens: costOfTokens,
	wrk,
	memory,
	settle,
	grants,
	revocations,
	"start-up": startUp,
	workers,
	scheduling,
	growth,
	// Times come last: Postgres stands back for them, and cannot be set forth again.
	first,
	latency,
	open: openLoop,
	half: halfLoad,
};

interface Preset {
	readonly scenarios: readonly string[];
	readonly windowS: number;
	readonly warmUpMs: number;
}

/** `half` is a part of `open`. */
const ALL = Object.keys(SCENARIOS).filter((name) => name !== "half");
const QUICK = ["plain", "stream", "settle", "start-up", "first", "latency"];
const GOALS = ["plain", "stream", "collections", "memory", "settle", "keys", "first", "latency", "half"];
/** Those of them for which there is a floor. */
const FLOORS = GOALS.filter((name) => name !== "keys");
const PRESETS: Readonly<Record<BenchMode["preset"], Preset>> = {
	"": { scenarios: ALL, windowS: 6, warmUpMs: 4_000 },
	quick: { scenarios: QUICK, windowS: 0.6, warmUpMs: 700 },
	goals: { scenarios: GOALS, windowS: 1.5, warmUpMs: 1_500 },
	// Shorter, and the first windows measure the compiler at work.
	floors: { scenarios: FLOORS, windowS: 1, warmUpMs: 2_500 },
	users: { scenarios: ["open", "day", "tokens"], windowS: 2, warmUpMs: 2_000 },
};

const { values: flags, positionals } = parseArgs({
	allowPositionals: true,
	options: {
		quick: { type: "boolean", default: false },
		goals: { type: "boolean", default: false },
		floors: { type: "boolean", default: false },
		users: { type: "boolean", default: false },
		source: { type: "boolean", default: false },
		rounds: { type: "string" },
		window: { type: "string" },
		streams: { type: "string" },
	},
});
for (const name of positionals) {
	if (SCENARIOS[name] === undefined)
		throw new Error(`there is no scenario ${name}; there are ${Object.keys(SCENARIOS).join(", ")}`);
}
const presetName = (["quick", "goals", "floors", "users"] as const).find((name) => flags[name]) ?? "";
const preset = PRESETS[presetName];
const chosen = positionals.length > 0 ? positionals : preset.scenarios;
const mode: BenchMode = {
	preset: presetName,
	quick: flags.quick || flags.floors,
	windowMs: Number(flags.window ?? preset.windowS) * 1000,
	warmUpMs: preset.warmUpMs,
	rounds: Number(flags.rounds ?? (flags.floors ? 2 : 3)),
	streams: Number(flags.streams ?? (flags.quick ? 100 : 1_000)),
	fromSource: flags.source,
};

moveToCore("rest");
const at = new Date().toISOString();
const startedMs = performance.now();
const say = (line: string) =>
	process.stderr.write(`${((performance.now() - startedMs) / 1000).toFixed(0)} s  ${line}\n`);
const figures = createFigures();
const world = await startWorld(mode, say);
try {
	for (const name of chosen) {
		say(`measuring ${name}`);
		await SCENARIOS[name]?.(world, figures);
	}
} finally {
	await world.stop();
}
const seconds = (performance.now() - startedMs) / 1000;
const run = {
	at,
	machine: describeMachine(),
	postgres: world.postgres.version,
	mode,
	figures,
	checks: world.checks,
	seconds,
};
const text = markdownOf(run);
process.stdout.write(`${text}\n`);
const asDocumented = flags.rounds === undefined && flags.window === undefined && !mode.fromSource;
if (positionals.length === 0 && asDocumented) {
	const folder = join(import.meta.dir, "results");
	mkdirSync(folder, { recursive: true });
	const name = `${at.slice(0, 10)}${presetName === "" ? "" : `-${presetName}`}`;
	await Bun.write(join(folder, `${name}.json`), jsonOf(run));
	await Bun.write(join(folder, `${name}.md`), text);
	if (presetName === "") {
		await Bun.write(join(folder, "latest.md"), text);
		await Bun.write(join(folder, "growth.svg"), growthSvg(figures) ?? "");
	}
}
process.exit(world.checks.every(({ ok }) => ok) ? 0 : 1);
