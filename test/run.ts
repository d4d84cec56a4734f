/**
 * Runs the tests in five processes, a part of them in six, on one test database: `bun test/run.ts [path…]`, by default all
 * of them. Failures are printed again at the end. The exit code is 1 if a test, a file or the runner failed.
 */
import { join, relative } from "node:path";
import { TEST_MS_MAX } from "./support/at-end.ts";
import { buildProduct } from "./support/built-product.ts";
import { createFailureReader } from "./support/failure-reader.ts";
import { writeDurations } from "./support/file-order.ts";
import { testHome, testPostgres } from "./support/postgres.ts";

/**
 * More than twice the processors that it is meant for: tests wait for deadlines and other processes for more than half of their time. A
 * part has nobody else's work beside its longest waits, and takes a fifth less with six.
 */
const PROCESSES_WHOLE = 5;
const PROCESSES_PART = 6;

const root = join(import.meta.dir, "..");
const args = process.argv.slice(2);
const asked = args.filter((arg) => !arg.startsWith("--")).map((path) => relative(root, join(process.cwd(), path)));
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
const [database, product] = await Promise.all([testPostgres(), buildProduct(testHome())]);
const startedAtMs = performance.now();
let exitCode = 0;
try {
	// The longest come first, so that none is left for the end.
	const timingsPath = join(testHome(), "timings.json");
	writeDurations(timingsPath, files);
	await run(files, [
		`--parallel=${asked.length === 0 ? PROCESSES_WHOLE : PROCESSES_PART}`,
		"--no-isolate",
		`--timings=${timingsPath}`,
		"--update-timings",
	]);
} finally {
	product.remove();
	await database.stop();
}
for (const failure of failures.found()) console.log(`\n${failure}`);
const tookS = Math.round((performance.now() - startedAtMs) / 1000);
console.log(`\n${files.length} files in ${tookS} s${exitCode === 0 ? "" : "; not all is well: see above"}`);
process.exitCode = stopped ? 1 : exitCode;

async function run(some: readonly string[], options: readonly string[]): Promise<void> {
	const colours = process.stdout.isTTY ? { FORCE_COLOR: "1" } : {};
	// Tests talk to this machine alone, whatever proxy stands in front of others.
	const direct = [process.env.NO_PROXY, "localhost", "127.0.0.1", "[::1]"].filter(Boolean).join(",");
	const child = Bun.spawn(
		[process.execPath, "test", `--timeout=${TEST_MS_MAX}`, ...options, ...some.map((file) => `./${file}`)],
		{
			cwd: root,
			env: {
				...process.env,
				...colours,
				NO_PROXY: direct,
				no_proxy: direct,
				// As the product does, or a thread of each process looks for memory to give back many times a second.
				MIMALLOC_PURGE_DELAY: "5000",
				MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "5000",
				TEST_POSTGRES_HELD: "1",
				TEST_BINARY: product.binary,
			},
			stdout: "pipe",
			stderr: "pipe",
		},
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
