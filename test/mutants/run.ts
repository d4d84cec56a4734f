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
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { testPostgres } from "../support/postgres.ts";
import { createRandom } from "../support/random.ts";
import { applyMutation, type Mutation, mutationsOf } from "./mutations.ts";
import { sqlMutations } from "./sql-mutants.ts";

type Tree = ReturnType<typeof plantTree>;

const COPIED = ["src", "test", "package.json", "bunfig.toml", "tsconfig.json", "deploy", "README.md"];
const RUN_MS_MAX = 400_000;
const TEST_MS_MAX = 60_000;

/** Copies the project for one fault at a time, so that the checkout stays unchanged. */
function plantTree(root: string) {
	const folder = mkdtempSync(join(tmpdir(), "tollgate-mutants-"));
	for (const name of COPIED) cpSync(join(root, name), join(folder, name), { recursive: true });
	symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
	return {
		folder,
		/** Runs the test files until one fails. Null if they take too long. */
		async run(files: readonly string[]) {
			if (files.length === 0) return { failed: false, by: "" };
			const paths = files.map((file) => `./${file}`);
			const child = Bun.spawn([process.execPath, "test", "--bail=1", `--timeout=${TEST_MS_MAX}`, ...paths], {
				cwd: folder,
				env: { ...process.env, TEST_POSTGRES_HELD: "1" },
				stdout: "pipe",
				stderr: "pipe",
				timeout: RUN_MS_MAX,
				killSignal: "SIGKILL",
			});
			const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
			await child.exited;
			if (child.signalCode !== null) return null;
			const test = /^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/m.exec(out + err)?.[1];
			return { failed: child.exitCode !== 0, by: test ?? "does not start" };
		},
		async changed<T>(file: string, text: string, work: () => Promise<T>): Promise<T> {
			const path = join(folder, file);
			const healthy = await Bun.file(path).text();
			writeFileSync(path, text);
			try {
				return await work();
			} finally {
				writeFileSync(path, healthy);
			}
		},
		remove: () => rmSync(folder, { recursive: true, force: true }),
	};
}

/** Test files of each room, the fastest first. */
const TESTS: Readonly<Record<string, readonly string[]>> = {
	ledger: ["ledger", "sim/simulation.test.ts", "gateway/serve/overspend.test.ts", "cluster/fence.test.ts"],
	admission: [
		"admission",
		"limits",
		"gateway/chat/chat-request.test.ts",
		"gateway/bill",
		"gateway/serve/overspend.test.ts",
		"attack/too-many.test.ts",
		"attack/fairness.test.ts",
	],
	limits: ["limits", "keys/keyring.test.ts"],
	keys: ["keys", "cli/customer-commands.test.ts", "ledger/cap-periods.test.ts", "console/member-keys.test.ts"],
	billing: ["billing", "console/webhook.test.ts", "browser/account/card.test.ts"],
	money: ["money", "admission/price.test.ts", "catalog"],
	"db/functions": ["ledger", "cluster", "keys", "limits"],
};
const ROOMS = Object.keys(TESTS);

/** Test files for a source file: first those that mention it, then the room's others by their last duration. */
function testsOf(root: string, room: string, sourceFile: string): { named: string[]; others: string[] } {
	const durations = JSON.parse(readFileSync(join(root, "test/durations.json"), "utf8")) as Record<string, number>;
	const files = (TESTS[room] ?? [])
		.flatMap((path) =>
			path.endsWith(".ts")
				? [`test/${path}`]
				: [...new Bun.Glob(`test/${path}/**/*.test.ts`).scanSync(root)].sort(
						(a, b) => (durations[a] ?? 0) - (durations[b] ?? 0),
					),
		)
		.filter((file) => !/mutants/.test(file));
	const name = sourceFile.endsWith(".sql") ? undefined : `/${basename(sourceFile)}"`;
	const names = (file: string) => name !== undefined && readFileSync(join(root, file), "utf8").includes(name);
	return { named: files.filter(names), others: files.filter((file) => !names(file)) };
}

/** The room and source files that an argument names: a room, or a file below `src/`. */
function sourcesOf(root: string, word: string): { room: string; files: string[] } {
	const room = ROOMS.find((one) => word === one || word.startsWith(`${one}/`));
	if (room === undefined) throw new Error(`there is no room ${word}; there are ${ROOMS.join(", ")}`);
	if (word !== room) return { room, files: [`src/${word}`] };
	return { room, files: [...new Bun.Glob(`src/${room}/**/*.ts`).scanSync(root)].sort() };
}

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
		const text = applyMutation(read(mutation.file), mutation);
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

/** Finds tests that fail even without a fault, so that their failures prove nothing. */
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
