/**
 * The long form of the simulation:
 *
 *   bun test/sim/run.ts [--seeds N] [--from N]     10,000 seeds; stops at the first failing seed and prints it
 *   bun test/sim/run.ts --seed S [--log]           replays one seed, with its last steps or the whole log
 *   … --projects                                  three levels of budgets instead of two
 *   … --cuts                                       limits are lowered all the time, with slow answers
 *   … --back                                       the server goes back in time
 *   … --sql [--seeds N] [--seed S]                 the same world on a real Postgres, with the real functions
 *   … --sql --mutants [WORD] [--seeds N]           the faults of the functions that these seeds find
 */
import { parseArgs } from "node:util";
import { stopTestPostgres, testPostgres } from "../support/postgres.ts";
import { brokenFunctions, findBroken } from "./broken-functions.ts";
import { type SimResult, simulate } from "./simulate.ts";
import { simulateSql } from "./simulate-sql.ts";

const { values, positionals } = parseArgs({
	args: process.argv.slice(2).filter((argument) => argument !== "--"),
	allowPositionals: true,
	options: {
		seeds: { type: "string", default: "10000" },
		from: { type: "string", default: "1" },
		seed: { type: "string" },
		log: { type: "boolean", default: false },
		projects: { type: "boolean", default: false },
		cuts: { type: "boolean", default: false },
		back: { type: "boolean", default: false },
		sql: { type: "boolean", default: false },
		mutants: { type: "boolean", default: false },
	},
});
const log = values.log ? console.log : undefined;
const { projects, cuts, back } = values;

process.exitCode = await run(Number(values.from), Number(values.seeds));

async function run(from: number, count: number): Promise<number> {
	if (!values.sql)
		return values.seed === undefined
			? runMany(from, count, (seed) => simulate(seed, { projects, cuts, back }))
			: show(simulate(Number(values.seed), { log, projects, cuts, back }));
	await testPostgres();
	try {
		if (values.mutants) return await findBrokenFunctions(from, count);
		if (values.seed !== undefined) return show(await simulateSql(Number(values.seed), { log, projects, cuts, back }));
		return await runMany(from, count, (seed) => simulateSql(seed, { projects, cuts, back }));
	} finally {
		await stopTestPostgres();
	}
}

/** Always exits with 0, because the ledger's tests detect the faults that this run does not. */
async function findBrokenFunctions(from: number, count: number): Promise<number> {
	const chosen = brokenFunctions.filter(
		({ file, breaks }) => positionals.length === 0 || positionals.some((word) => `${file} ${breaks}`.includes(word)),
	);
	let found = 0;
	for (const mutant of chosen) {
		const first = mutant.sqlSeed ?? from;
		const by = await findBroken(mutant, first, count, projects || mutant.sqlProjects);
		if (by) found += 1;
		const seen = by ? `seed ${by.seed}: ${by.failure}` : `none of ${count} seeds from ${first} on`;
		console.log(`${mutant.file}: ${mutant.breaks}\n         ${seen}`);
	}
	console.log(`${found} of ${chosen.length} found`);
	return 0;
}

function show(result: SimResult): number {
	const { seed, failure, steps, hash } = result;
	if (failure) for (const line of result.recent.slice(-40)) console.log(line);
	console.log(`seed ${seed}: ${failure ?? "all invariants hold"} (${steps} steps, trace ${hash.toString(16)})`);
	return failure ? 1 : 0;
}

async function runMany(
	from: number,
	count: number,
	one: (seed: number) => SimResult | Promise<SimResult>,
): Promise<number> {
	const totals = new Map<string, number>();
	const startedMs = performance.now();
	for (let seed = from; seed < from + count; seed++) {
		const { failure, stats } = await one(seed);
		for (const [name, value] of Object.entries(stats)) totals.set(name, (totals.get(name) ?? 0) + value);
		if (failure) {
			console.log(
				`seed ${seed}: ${failure}\nreplay it with: bun test/sim/run.ts${values.sql ? " --sql" : ""}${projects ? " --projects" : ""}${cuts ? " --cuts" : ""}${back ? " --back" : ""} --seed ${seed}`,
			);
			return 1;
		}
		if ((seed - from + 1) % 500 === 0) console.log(`${seed - from + 1} seeds`);
	}
	for (const [name, value] of [...totals].sort()) console.log(`${String(value).padStart(9)} ${name}`);
	console.log(`${count} seeds, ${Math.round((performance.now() - startedMs) / count)} ms each: all invariants hold`);
	return 0;
}
