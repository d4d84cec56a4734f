import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLog } from "../../src/base/log.ts";
import { startWorkerSlot } from "../../src/cli/worker-slot.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { waitFor } from "../support/wait.ts";

const RUN_DIR = join(import.meta.dir, "../../src/planes/run-dir.ts");

const LIMIT_MS = 1_500;
const folder = temporaryFolder();
const marker = join(folder, "first-is-there");
const path = join(folder, "child.ts");
/**
 * The first process ignores `retire`. The second ignores a stop if `second` is `stays`, and is never ready if it is
 * `deaf`.
 */
writeFileSync(
	path,
	`import { existsSync, writeFileSync } from "node:fs";
	const isFirst = !existsSync(process.argv[2]);
	writeFileSync(process.argv[2], String(process.pid));
	setInterval(() => {}, 1_000);
	process.on("message", () => {});
	process.on("SIGTERM", () => process.argv[3] === "stays" || process.exit(0));
	process.on("SIGHUP", () => writeFileSync(process.argv[2] + "-heard", ""));
	if (isFirst || process.argv[3] !== "deaf") process.send({ ready: true });
	`,
);

function slot(name: string, second: "well" | "deaf" | "stays", onLine = () => {}) {
	const said: string[] = [];
	const write = (line: string) => {
		said.push(JSON.parse(line).message);
		onLine();
	};
	const log = createLog({ level: "warn", write });
	const made = startWorkerSlot(
		{ log, givesUp: () => false },
		{
			name,
			argv: [process.execPath, path, `${marker}-${name}`, second],
			env: { PATH: process.env.PATH ?? "" },
			retire: "leave",
			stopMsMax: LIMIT_MS,
			readyMsMax: LIMIT_MS,
		},
	);
	atEnd(() => made.stop("SIGTERM"));
	return { made, said };
}

test("a rolling restart kills a replaced process that hangs, and continues", async () => {
	const { made, said } = slot("stays", "well");
	await made.ready;
	await made.replace();
	await waitFor(() => said.length > 1, "its end to be noted");
	expect(said).toEqual([
		"a replaced process does not stop in time; killing it",
		"a stopping process did not exit cleanly",
	]);
}, 60_000);

test("a rolling restart kills a new process that hangs, and the old process stays", async () => {
	const { made, said } = slot("waits", "deaf");
	await made.ready;
	await expect(made.replace()).rejects.toThrow("ended before it was ready");
	expect(said).toEqual(["a successor is not ready in time; killing it"]);
}, 60_000);

test("a signal sent while a process starts arrives once, as soon as it is ready", async () => {
	const { made, said } = slot("starts", "well");
	made.signal("SIGHUP");
	await made.ready;
	await waitFor(() => existsSync(`${marker}-starts-heard`), "the signal");
	expect(said).toEqual([]);
}, 60_000);

test("a stop kills a process that hangs, and fails", async () => {
	const { made, said } = slot("stops", "stays");
	await made.ready;
	expect(await made.stop("SIGTERM")).toBe(false);
	expect(said).toEqual(["a process does not stop in time; killing it", "a stopping process did not exit cleanly"]);
}, 60_000);

const pidOf = (name: string) => Number(readFileSync(`${marker}-${name}`, "utf8"));

test("a stop fails if a process died and no successor was started", async () => {
	const stopped = Promise.withResolvers<boolean>();
	const { made, said } = slot("is alone", "well", () => {
		if (said.length === 1) stopped.resolve(made.stop("SIGTERM"));
	});
	await made.ready;
	process.kill(pidOf("is alone"), "SIGKILL");
	expect(await stopped.promise).toBe(false);
	expect(said).toEqual([
		"a process died; starting it again",
		"a dead process had not been started again before the stop",
	]);
}, 60_000);

test("a stop fails if a process died and its successor was not ready", async () => {
	const { made, said } = slot("is bereft", "deaf");
	await made.ready;
	const first = pidOf("is bereft");
	process.kill(first, "SIGKILL");
	await waitFor(() => pidOf("is bereft") !== first, "a successor");
	expect(await made.stop("SIGINT")).toBe(false);
	expect(said).toEqual(["a process died; starting it again", "a stopping process did not exit cleanly"]);
}, 60_000);

test("a stop succeeds if a process died and its successor was ready", async () => {
	const { made, said } = slot("is followed", "well");
	await made.ready;
	const first = pidOf("is followed");
	process.kill(first, "SIGKILL");
	await waitFor(() => pidOf("is followed") !== first, "a successor");
	made.signal("SIGHUP");
	await waitFor(() => existsSync(`${marker}-is followed-heard`), "it to be ready");
	expect(await made.stop("SIGTERM")).toBe(true);
	expect(said).toEqual(["a process died; starting it again"]);
}, 60_000);

test.each([
	["while its successor starts", "a process died; its successor is already starting"],
	["just before it is replaced", "a process died; starting it again"],
])(
	"a process that dies %s gets one successor, which takes over its socket",
	async (when, noted) => {
		const place = join(folder, when.replaceAll(" ", "-"));
		const child = `${place}.ts`;
		/** All processes listen on the same socket path: the first process at once, later ones when the test allows it. */
		writeFileSync(
			child,
			`import { appendFileSync, existsSync } from "node:fs";
		import { listenAtSocket } from ${JSON.stringify(RUN_DIR)};
		const place = ${JSON.stringify(place)};
		const isFirst = !existsSync(place + "-started");
		appendFileSync(place + "-started", process.pid + "\\n");
		while (!isFirst && !existsSync(place + "-may-" + process.pid)) await Bun.sleep(10);
		listenAtSocket(place + ".sock", { fetch: () => new Response(String(process.pid)), error: () => new Response(), maxRequestBodySize: 1 });
		process.send({ ready: true });
		process.on("SIGTERM", () => process.exit(0));
		process.on("message", () => process.exit(0));
		`,
		);
		const started = () => readFileSync(`${place}-started`, "utf8").trim().split("\n").map(Number);
		const asked = () =>
			fetch("http://worker/", { unix: `${place}.sock`, keepalive: false }).then(
				(answer) => answer.text(),
				() => "nobody",
			);
		const said: string[] = [];
		const died = Promise.withResolvers<void>();
		const write = (line: string) => {
			said.push(JSON.parse(line).message);
			died.resolve();
		};
		const made = startWorkerSlot(
			{ log: createLog({ level: "warn", write }), givesUp: () => false },
			{
				name: "follows",
				argv: [process.execPath, child],
				env: { PATH: process.env.PATH ?? "" },
				retire: "leave",
				stopMsMax: LIMIT_MS,
			},
		);
		atEnd(() => made.stop("SIGTERM"));
		await made.ready;
		const [first = 0] = started();
		const isUnderWay = when.startsWith("while");
		const underWay = isUnderWay ? made.replace() : undefined;
		if (isUnderWay) await waitFor(() => started().length === 2, "the successor's start");
		process.kill(first, "SIGKILL");
		await died.promise;
		const replaced = underWay ?? made.replace();
		await waitFor(() => started().length === 2, "the successor's start");
		// Waits longer than the restart delay, after which a third process would have started.
		await Bun.sleep(500);
		const [, successor, ...others] = started();
		writeFileSync(`${place}-may-${successor}`, "");
		await waitFor(async () => (await asked()) === String(successor), "the successor to serve");
		for (const pid of others) writeFileSync(`${place}-may-${pid}`, "");
		await replaced;
		expect(await asked()).toBe(String(successor));
		expect(others).toEqual([]);
		expect(said).toEqual([noted]);
	},
	60_000,
);
