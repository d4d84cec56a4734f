/**
 * Measures the shipped product against a plain Bun proxy and nginx, in alternating rounds on fixed CPU cores.
 *
 *     bun run bench                                all scenarios, windows of 6 s: about ten minutes
 *     bun run bench -- --quick                     short windows: about two minutes
 *     bun run bench -- plain stream                only these scenarios
 *     bun run bench -- --baseline ../before        another checkout (or its binary) in the same rounds
 *     bun run soak                                 only the scenario `soak`, which the other commands omit: some minutes
 *     … --rounds 5 --window 3                      other rounds and windows (s)
 *
 * With the usual rounds and windows and without a baseline, a run over all scenarios replaces `results/bench.md`, and
 * one of `soak` `results/soak.md`. Exit code 1 if a check of the run's own results fails.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { soakService } from "../soak/soak.ts";
import type { Figures } from "./figures.ts";
import { createFigures } from "./figures.ts";
import { measureLatency } from "./latency.ts";
import { describeMachine, moveToRestCore } from "./machine.ts";
import { measureMemory } from "./memory.ts";
import { measureUnstreamed } from "./plain.ts";
import { markdownOf } from "./report.ts";
import { measureFirstToken, measureStreams } from "./stream.ts";
import type { BenchMode, World } from "./world.ts";
import { startWorld } from "./world.ts";

/** Times are measured last, because this measurement lowers Postgres's priority permanently. */
const SCENARIOS: Readonly<Record<string, (world: World, figures: Figures) => Promise<void>>> = {
	plain: measureUnstreamed,
	stream: measureStreams,
	memory: measureMemory,
	first: measureFirstToken,
	latency: measureLatency,
	soak: soakService,
};

const { values: flags, positionals } = parseArgs({
	allowPositionals: true,
	options: {
		quick: { type: "boolean", default: false },
		baseline: { type: "string" },
		rounds: { type: "string", default: "3" },
		window: { type: "string" },
	},
});
for (const name of positionals) {
	if (SCENARIOS[name] === undefined)
		throw new Error(`there is no scenario ${name}; there are ${Object.keys(SCENARIOS).join(", ")}`);
}
const chosen = positionals.length > 0 ? positionals : Object.keys(SCENARIOS).filter((name) => name !== "soak");
const mode: BenchMode = {
	quick: flags.quick,
	windowMs: Number(flags.window ?? (flags.quick ? 0.6 : 6)) * 1000,
	warmUpMs: flags.quick ? 700 : 4_000,
	rounds: Number(flags.rounds),
	baseline: flags.baseline,
};

moveToRestCore();
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
const { checks, postgres } = world;
const text = markdownOf({ at, machine: describeMachine(), postgres: postgres.version, mode, figures, checks, seconds });
process.stdout.write(`${text}\n`);
const isUsual = !flags.quick && flags.rounds === "3" && flags.window === undefined && flags.baseline === undefined;
const name = positionals.length === 0 ? "bench" : positionals.join();
if (isUsual && ["bench", "soak"].includes(name)) await Bun.write(join(import.meta.dir, `results/${name}.md`), text);
process.exit(checks.every(({ ok }) => ok) ? 0 : 1);
