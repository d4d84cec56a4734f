import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLog } from "../../src/base/log.ts";
import { startPost } from "../../src/cli/post.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { waitFor } from "../support/wait.ts";

const LIMIT_MS = 1_500;
const folder = temporaryFolder();
const marker = join(folder, "first-is-there");
const path = join(folder, "child.ts");
/** The first hears nothing of leaving, and if `second` is `stays`, of a stop; if that is `deaf`, the second never becomes ready. */
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

function post(name: string, second: "well" | "deaf" | "stays", onLine = () => {}) {
	const said: string[] = [];
	const write = (line: string) => {
		said.push(JSON.parse(line).message);
		onLine();
	};
	const log = createLog({ level: "warn", write });
	const made = startPost(
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

test("a process that does not leave when it is replaced is killed after its time, and the roll goes on", async () => {
	const { made, said } = post("stays", "well");
	await made.ready;
	await made.replace();
	await waitFor(() => said.length > 1, "its end to be noted");
	expect(said).toEqual([
		"a process that was replaced does not leave; killing it",
		"a process that was to leave did not end in order",
	]);
}, 60_000);

test("a successor that does not become ready is killed after its time, and the present process stays", async () => {
	const { made, said } = post("waits", "deaf");
	await made.ready;
	await expect(made.replace()).rejects.toThrow("ended before it was ready");
	expect(said).toEqual(["a successor does not become ready; killing it"]);
}, 60_000);

test("a signal that comes while a process starts does not end it, and is heard once it is ready", async () => {
	const { made, said } = post("starts", "well");
	made.signal("SIGHUP");
	await made.ready;
	await waitFor(() => existsSync(`${marker}-starts-heard`), "the signal");
	expect(said).toEqual([]);
}, 60_000);

test("a process that does not leave when it is told to stop is killed after its time, which is no stop in order", async () => {
	const { made, said } = post("stops", "stays");
	await made.ready;
	expect(await made.stop("SIGTERM")).toBe(false);
	expect(said).toEqual([
		"a process that was told to stop does not leave; killing it",
		"a process that was to leave did not end in order",
	]);
}, 60_000);

/** Of the process that was started last. */
const pidOf = (name: string) => Number(readFileSync(`${marker}-${name}`, "utf8"));

test("a process that was killed before the stop, and has no successor yet, makes it none in order", async () => {
	const stopped = Promise.withResolvers<boolean>();
	const { made, said } = post("is alone", "well", () => {
		if (said.length === 1) stopped.resolve(made.stop("SIGTERM"));
	});
	await made.ready;
	process.kill(pidOf("is alone"), "SIGKILL");
	expect(await stopped.promise).toBe(false);
	expect(said).toEqual([
		"a process died; starting it again",
		"a process that died before the stop was not started again yet",
	]);
}, 60_000);

test("so does one whose successor is not ready yet, and ends by the signal", async () => {
	const { made, said } = post("is bereft", "deaf");
	await made.ready;
	const first = pidOf("is bereft");
	process.kill(first, "SIGKILL");
	await waitFor(() => pidOf("is bereft") !== first, "a successor");
	expect(await made.stop("SIGINT")).toBe(false);
	expect(said).toEqual(["a process died; starting it again", "a process that was to leave did not end in order"]);
}, 60_000);

test("one that was killed before the stop and has a successor that is ready does not", async () => {
	const { made, said } = post("is followed", "well");
	await made.ready;
	const first = pidOf("is followed");
	process.kill(first, "SIGKILL");
	await waitFor(() => pidOf("is followed") !== first, "a successor");
	made.signal("SIGHUP");
	await waitFor(() => existsSync(`${marker}-is followed-heard`), "it to be ready");
	expect(await made.stop("SIGTERM")).toBe(true);
	expect(said).toEqual(["a process died; starting it again"]);
}, 60_000);
