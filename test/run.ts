/**
 * Runs the tests in five processes, a part of them in six, on one test database: `bun test/run.ts [path…]`, by default all
 * of them. What failed is told once more at the end, whole. Ends with 1 if anything failed, be it a test, a file or the
 * runner itself. With `--cpu` it tells how many seconds of processor each file used, which unlike the time it took is the
 * same on a busy machine, or nearly.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { findPostmaster } from "../src/db/postmaster.ts";
import { TEST_MS_MAX } from "./support/at-end.ts";
import { buildProduct } from "./support/built-product.ts";
import { watchServer } from "./support/cpu-times.ts";
import { createFailureReader } from "./support/failure-reader.ts";
import { writeDurations } from "./support/file-order.ts";
import { serverFolder, testHome, testPostgres } from "./support/postgres.ts";

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

const cpuLog = args.includes("--cpu") ? join(mkdtempSync(join(tmpdir(), "tollgate-cpu-")), "files") : undefined;
// Held for the whole run, so that no file has to start it, and none stops it.
const [database, product] = await Promise.all([testPostgres(), buildProduct(testHome())]);
const postmaster = findPostmaster(join(serverFolder(), "postgres", "cluster"));
const watched = cpuLog && postmaster ? watchServer(postmaster.pid) : undefined;
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
	if (cpuLog && watched) tellTimes(watched.read(cpuLog));
} finally {
	product.remove();
	await database.stop();
	if (cpuLog) rmSync(dirname(cpuLog), { recursive: true });
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
				...(cpuLog && { TEST_CPU_LOG: cpuLog }),
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

function tellTimes({ totalS, files }: ReturnType<ReturnType<typeof watchServer>["read"]>): void {
	const row = (own: number, children: number, server: number, name: string) =>
		console.log(
			`${[own + children + server, own, children, server].map((s) => s.toFixed(1).padStart(7)).join("")}  ${name}`,
		);
	console.log("\n  CPU s    own  child  server");
	const sum = { own: 0, children: 0, server: 0 };
	for (const file of files.toSorted((a, b) => all(b) - all(a))) {
		row(file.ownS, file.childrenS, file.databaseS, relative(root, file.file));
		sum.own += file.ownS;
		sum.children += file.childrenS;
		sum.server += file.databaseS;
	}
	row(
		0,
		0,
		totalS - sum.server,
		"the server besides: its own processes, copies of databases, connections that were not seen to end",
	);
	row(sum.own, sum.children, totalS, "together");

	function all(file: (typeof files)[number]): number {
		return file.ownS + file.childrenS + file.databaseS;
	}
}
