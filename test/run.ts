/**
 * Runs the tests in three processes, on one test database: `bun test/run.ts [path…]`, by default all of them. What failed
 * is told once more at the end, whole. Ends with 1 if anything failed, be it a test, a file or the runner itself.
 */
import { join, relative } from "node:path";
import { createFailureReader } from "./support/failure-reader.ts";
import { testHome, testPostgres } from "./support/postgres.ts";

/** One more than the processors that it is meant for: a test that waits leaves its own to another. */
const PROCESSES = 3;
/** A test beside others on a busy machine; only one that hangs takes so long. */
const TEST_MS_MAX = 60_000;
/** They measure time: they run one by one, after all others. */
const ALONE: readonly string[] = ["test/attack/bodies.test.ts"];

const root = join(import.meta.dir, "..");
const asked = process.argv.slice(2).map((path) => relative(root, join(process.cwd(), path)));
const files = [...new Bun.Glob("test/**/*.test.ts").scanSync(root)]
	.filter((file) => asked.length === 0 || asked.some((path) => file === path || file.startsWith(`${path}/`)))
	.sort();
if (files.length === 0) {
	console.error(`error: no test is at ${asked.join(", ")}`);
	process.exit(2);
}

const failures = createFailureReader();
let running: Bun.Subprocess | undefined;
let stopped = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
	process.on(signal, () => {
		stopped = true;
		running?.kill(signal);
	});
}

// Held for the whole run, so that no file has to start it, and none stops it.
const database = await testPostgres();
const startedAtMs = performance.now();
let exitCode = 0;
try {
	const beside = files.filter((file) => !ALONE.includes(file));
	const alone = files.filter((file) => ALONE.includes(file));
	// The longest of the last run come first, so that none is left for the end. It is kept beside the database.
	const timings = [`--timings=${join(testHome(), "timings.json")}`, "--update-timings"];
	if (beside.length > 0) await run(beside, [`--parallel=${PROCESSES}`, "--no-isolate", ...timings]);
	if (alone.length > 0 && !stopped) await run(alone, []);
} finally {
	await database.stop();
}
for (const failure of failures.found()) console.log(`\n${failure}`);
const tookS = Math.round((performance.now() - startedAtMs) / 1000);
console.log(`\n${files.length} files in ${tookS} s${exitCode === 0 ? "" : "; not all is well: see above"}`);
process.exitCode = stopped ? 1 : exitCode;

async function run(some: readonly string[], options: readonly string[]): Promise<void> {
	const colours = process.stdout.isTTY ? { FORCE_COLOR: "1" } : {};
	const child = Bun.spawn(
		[process.execPath, "test", `--timeout=${TEST_MS_MAX}`, ...options, ...some.map((file) => `./${file}`)],
		{ cwd: root, env: { ...process.env, ...colours, TEST_POSTGRES_HELD: "1" }, stdout: "pipe", stderr: "pipe" },
	);
	running = child;
	await Promise.all([
		// Bun's report goes to stderr, what tests print to stdout.
		pass(child.stdout, process.stdout, () => {}),
		pass(child.stderr, process.stderr, failures.read),
	]);
	if ((await child.exited) !== 0) exitCode = 1;
	failures.end();
}

async function pass(
	from: ReadableStream<Uint8Array>,
	to: NodeJS.WriteStream,
	read: (text: string) => void,
): Promise<void> {
	const decoder = new TextDecoder();
	for await (const bytes of from) {
		to.write(bytes);
		read(decoder.decode(bytes, { stream: true }));
	}
}
