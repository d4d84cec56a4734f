/**
 * Runs the tests in five processes (six for a part of the suite) on one database server: `bun test/run.ts [path…]`.
 * Prints failures again at the end. Exits with 1 if a test, a file or the runner failed.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import durations from "./durations.json" with { type: "json" };
import { TEST_MS_MAX } from "./support/at-end.ts";
import { buildProduct } from "./support/built-product.ts";
import { testHome, testPostgres } from "./support/postgres.ts";

/** Most lines that are printed for one failure; the complete output is above. */
const LINES_MAX = 200;
const FAILURES_MAX = 100;

const FILE = /^test\/\S+\.test\.ts:$/;
const PASSED = /^\((pass|skip|todo)\) /;
/** The line of a failed test, or of a file whose process died. */
const FAILED = /^(\(fail\)|✗) /;
const OUTSIDE = "# Unhandled error between tests";
const LIST = /^\d+ tests? failed:$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence for colours begins with one.
const COLOUR = /\x1b\[[0-9;]*m/g;

/** Collects failures from the output of `bun test`, so that they can be printed again at the end. */
function createFailureReader() {
	/** Each failure with its file and the output since the previous test. */
	const found: string[] = [];
	let rest = "";
	let file = "";
	let lines: string[] = [];
	let listed = false;

	function keep(): void {
		if (found.length < FAILURES_MAX) found.push([file, ...lines.slice(-LINES_MAX)].join("\n").trim());
		lines = [];
	}

	function take(line: string): void {
		if (FILE.test(line)) {
			flush();
			file = line;
		} else if (LIST.test(line)) listed = true;
		else if (PASSED.test(line)) flush();
		else if (FAILED.test(line)) {
			lines.push(line);
			if (listed) lines = [];
			else keep();
		} else lines.push(line);
	}

	/** An error outside of any test has no closing line, so it ends at the next passed test or file. */
	function flush(): void {
		const at = lines.indexOf(OUTSIDE);
		lines = at === -1 ? [] : lines.slice(at);
		if (lines.length > 0) keep();
	}

	return {
		read(text: string): void {
			const all = (rest + text).split("\n");
			rest = all.pop() ?? "";
			for (const line of all) take(line.replace(COLOUR, "").trimEnd());
		},
		end(): void {
			if (rest !== "") take(rest);
			flush();
			rest = "";
			file = "";
			listed = false;
		},
		found,
	};
}

/** Assumed duration of a file without a measurement; slow files have one in `durations.json`. */
const UNKNOWN_MS = 2_000;

/**
 * Writes the durations of `files` in milliseconds to `path`, so that Bun starts the longest files first. Bun updates
 * that file and needs a value for every file; `durations.json` has measurements of another machine.
 */
function writeDurations(path: string, files: readonly string[]): void {
	const known: Record<string, number> = { ...durations, ...measured(path) };
	const listed = Object.fromEntries(files.map((file) => [file, known[file] ?? UNKNOWN_MS]));
	writeFileSync(path, JSON.stringify({ version: 1, files: { ...known, ...listed } }));
}

function measured(path: string): Record<string, number> {
	if (!existsSync(path)) return {};
	try {
		return JSON.parse(readFileSync(path, "utf8")).files ?? {};
	} catch {
		// The file may be incomplete if an earlier run was killed.
		return {};
	}
}

/**
 * Processes for the whole suite on two processors; more than two, because tests mostly wait. A part of the suite takes
 * a fifth less time with six.
 */
const PROCESSES_WHOLE = 5;
const PROCESSES_PART = 6;

/**
 * Run after all others, one after the other: on a machine that is busy with other tests a request takes more processor
 * time, and its code stays uncompiled for longer, which makes more objects.
 */
const ALONE = ["test/attack/budgets.test.ts", "test/bench/counts.test.ts"];

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

// Holds the database server for the whole run, so that files do not start and stop it.
const [database, product] = await Promise.all([testPostgres(), buildProduct(testHome())]);
const startedAtMs = performance.now();
let exitCode = 0;
try {
	// Starts the longest files first, because a long file at the end would keep the other processes idle.
	const timingsPath = join(testHome(), "timings.json");
	writeDurations(timingsPath, files);
	const together = files.filter((file) => !ALONE.includes(file));
	if (together.length > 0)
		await run(together, [
			`--parallel=${asked.length === 0 ? PROCESSES_WHOLE : PROCESSES_PART}`,
			"--no-isolate",
			`--timings=${timingsPath}`,
			"--update-timings",
		]);
	const alone = files.filter((file) => ALONE.includes(file));
	if (alone.length > 0 && !stopped) await run(alone, ["--no-isolate"]);
} finally {
	product.remove();
	await database.stop();
}
for (const failure of failures.found) console.log(`\n${failure}`);
const tookS = Math.round((performance.now() - startedAtMs) / 1000);
console.log(`\n${files.length} files in ${tookS} s${exitCode === 0 ? "" : "; not all is well: see above"}`);
process.exitCode = stopped ? 1 : exitCode;

async function run(some: readonly string[], options: readonly string[]): Promise<void> {
	const colours = process.stdout.isTTY ? { FORCE_COLOR: "1" } : {};
	// Connections to this machine must not use a proxy.
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
				// As in the product: by default a thread of each process tries many times a second to return memory.
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
		// Bun writes its report to stderr; the tests write to stdout.
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
