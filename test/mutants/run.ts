/**
 * Puts one fault at a time into a copy of the source and runs the tests of its room:
 *
 *   bun run mutants -- ledger --count 40        a seeded sample of the room's faults (20)
 *   bun run mutants -- money/nano-usd.ts        of one file
 *   bun run mutants -- db/functions             the fixed faults of the SQL functions
 *   … --seed 7                                  another sample (1)
 *   … --list                                    lists the faults only
 *
 * Prints each survivor and the share of killed faults. A timeout counts as killed; a fault that does not parse is not
 * counted. Exit code 1 if a fault survives.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { testPostgres } from "../support/postgres.ts";
import { createRandom } from "../support/random.ts";
import { type Mutation, mutated, mutationsOf } from "./mutations.ts";
import { sourcesOf, testsOf } from "./rooms.ts";
import { sqlMutations } from "./sql-mutants.ts";
import { plantTree, type Tree } from "./tree.ts";

const ROOT = join(import.meta.dir, "../..");
const { values: flags, positionals } = parseArgs({
	allowPositionals: true,
	options: {
		count: { type: "string", default: "20" },
		seed: { type: "string", default: "1" },
		list: { type: "boolean", default: false },
	},
});
if (positionals.length === 0) throw new Error("name a room, or a file below src/");
const database = flags.list ? undefined : await testPostgres();
const tree = flags.list ? undefined : plantTree(ROOT);
const root = tree?.folder ?? ROOT;
try {
	for (const word of positionals) await tryRoom(word);
} finally {
	tree?.remove();
	await database?.stop();
}

async function tryRoom(word: string): Promise<void> {
	const { room, files } = sourcesOf(root, word);
	const read = (file: string) => readFileSync(join(root, file), "utf8");
	const all = room === "db/functions" ? sqlMutations(root) : files.flatMap((file) => mutationsOf(file, read(file)));
	const sample = createRandom(Number(flags.seed)).shuffled(all).slice(0, Number(flags.count));
	const where = ({ file, line, change }: Mutation) => `${file}:${line}: ${change}`;
	if (tree === undefined) return console.log(sample.map(where).join("\n"));
	const broken = await brokenTests(tree, room);
	let killed = 0;
	let tried = 0;
	let unparsed = 0;
	for (const mutation of sample) {
		const text = mutated(read(mutation.file), mutation);
		if (text === undefined) {
			unparsed += 1;
			continue;
		}
		tried += 1;
		const by = await tree.changed(mutation.file, text, () => killerOf(tree, room, mutation, broken));
		if (by !== undefined) killed += 1;
		console.log(by === undefined ? `SURVIVES ${where(mutation)}` : `killed   ${where(mutation)}\n         by ${by}`);
	}
	const share = tried === 0 ? 0 : Math.round((1000 * killed) / tried) / 10;
	console.log(`${word}: ${killed} of ${tried} killed (${share} %), of ${all.length} faults; ${unparsed} do not parse`);
	if (killed < tried) process.exitCode = 1;
}

async function killerOf(
	tree: Tree,
	room: string,
	{ file }: Mutation,
	broken: ReadonlySet<string>,
): Promise<string | undefined> {
	const { named, others } = testsOf(root, room, file);
	for (const files of [named, others]) {
		const outcome = await tree.run(files.filter((test) => !broken.has(test)));
		if (outcome === null) return "a run that does not end";
		if (outcome.failed) return outcome.by;
	}
	return undefined;
}

/** Tests that fail without a fault prove nothing. */
async function brokenTests(tree: Tree, room: string): Promise<ReadonlySet<string>> {
	const broken = new Set<string>();
	const { others } = testsOf(root, room, "no file");
	if ((await tree.run(others))?.failed === false) return broken;
	for (const file of others) {
		const outcome = await tree.run([file]);
		if (outcome?.failed === false) continue;
		broken.add(file);
		console.log(`fails on the source as it is: ${file} (${outcome?.by ?? "no end"})`);
	}
	return broken;
}
