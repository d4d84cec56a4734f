/**
 * The simulation as a long run:
 *
 *   bun test/sim/run.ts --seeds 10000 [--from N]   stops at the first failing seed and prints it
 *   bun test/sim/run.ts --seed S [--log]           replays one seed, with what happened last, or all of it
 *   bun test/sim/run.ts --rare [--seeds N]         looks for the defects that the short form does not find
 */
import { parseArgs } from "node:util";
import { mutants } from "./mutants.ts";
import { simulate } from "./simulate.ts";

const { values } = parseArgs({
	options: {
		seeds: { type: "string", default: "1000" },
		from: { type: "string", default: "1" },
		seed: { type: "string" },
		log: { type: "boolean", default: false },
		rare: { type: "boolean", default: false },
	},
});

process.exitCode = values.rare
	? findRare(Number(values.from), Number(values.seeds))
	: values.seed === undefined
		? runMany(Number(values.from), Number(values.seeds))
		: replay(Number(values.seed));

function findRare(from: number, count: number): number {
	let missed = 0;
	for (const mutant of mutants.filter(({ rare }) => rare)) {
		let seed = from;
		while (seed < from + count && !simulate(seed, { mutant }).failure) seed += 1;
		const found = seed < from + count;
		console.log(`${mutant.name}: ${found ? `seed ${seed}` : `none of ${count} seeds`}`);
		if (!found) missed += 1;
	}
	return missed;
}

function replay(seed: number): number {
	const result = simulate(seed, { log: values.log ? console.log : undefined });
	if (result.failure) for (const line of result.recent.slice(-40)) console.log(line);
	console.log(
		`seed ${seed}: ${result.failure ?? "all invariants hold"} (${result.steps} steps, trace ${result.hash.toString(16)})`,
	);
	return result.failure ? 1 : 0;
}

function runMany(from: number, count: number): number {
	const totals = new Map<string, number>();
	const startedMs = performance.now();
	for (let seed = from; seed < from + count; seed++) {
		const { failure, stats } = simulate(seed);
		for (const [name, value] of Object.entries(stats)) totals.set(name, (totals.get(name) ?? 0) + value);
		if (failure) {
			console.log(`seed ${seed}: ${failure}\nreplay it with: bun test/sim/run.ts --seed ${seed}`);
			return 1;
		}
		if ((seed - from + 1) % 500 === 0) console.log(`${seed - from + 1} seeds`);
	}
	for (const [name, value] of [...totals].sort()) console.log(`${String(value).padStart(9)} ${name}`);
	console.log(`${count} seeds, ${Math.round((performance.now() - startedMs) / count)} ms each: all invariants hold`);
	return 0;
}
