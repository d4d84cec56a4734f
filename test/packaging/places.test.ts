/** Runs the README's two commands in copies of the checkout at unusual paths, as real processes without a network. */

import { afterEach, expect, test } from "bun:test";
import {
	chmodSync,
	chownSync,
	existsSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Subprocess } from "bun";
import { findPostmaster } from "../../src/db/postmaster.ts";
import { quietPort } from "../chaos/serve-process.ts";
import { atEnd, temporaryFolder, testsMayTake } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import { placeCluster } from "../support/made-cluster.ts";
import { memoryFolder, sweepMemory } from "../support/memory-folder.ts";
import { waitFor } from "../support/wait.ts";

testsMayTake(120_000);

interface Place {
	readonly path: string;
	readonly mode: number;
	readonly as: "root" | "user";
}

const ROOT = join(import.meta.dir, "../..");
const IS_ROOT = process.getuid?.() === 0;
const NOBODY = 65_534;
const LEFT_OUT = [".git", ".data", "dist"];
/** An address at which no server listens (port 9, discard). */
const NOWHERE = "http://127.0.0.1:9";

atEnd(sweepMemory);
const base = temporaryFolder();
let tree = join(base, "tree");
let running: Subprocess[] = [];

mkdirSync(tree);
for (const name of readdirSync(ROOT)) if (!LEFT_OUT.includes(name)) copy(join(ROOT, name), join(tree, name));
mkdirSync(join(base, "bin"));
for (const folder of [base, tree, join(base, "bin")]) chmodSync(folder, 0o755);
copy(process.execPath, join(base, "bin", "bun"));

afterEach(async () => {
	for (const child of running) if (child.exitCode === null) process.kill(-child.pid, "SIGKILL");
	await Promise.all(running.map(({ exited }) => exited));
	running = [];
	const left = findPostmaster(cluster());
	if (left !== undefined) process.kill(left.pid, "SIGQUIT");
	await waitFor(() => findPostmaster(cluster()) === undefined, "the database to end");
	rmSync(join(tree, ".data"), { recursive: true, force: true });
});

const cluster = () => join(tree, ".data", "demo", "postgres", "cluster");

/** Copies a folder with hard links where possible, because only the folders must be new. */
function copy(from: string, to: string): void {
	const copied = ["-RPl", "-RP"].some((flags) => {
		rmSync(to, { recursive: true, force: true });
		return Bun.spawnSync(["cp", flags, from, to], { stdout: "ignore", stderr: "ignore" }).success;
	});
	if (!copied) throw new Error(`${from} could not be copied: is there room in ${base}?`);
}

/** Moves the copy to the place and makes the test's user the owner of its folders. */
function moveTo(place: Place): void {
	const to = join(base, place.path);
	mkdirSync(dirname(to), { recursive: true });
	renameSync(tree, to);
	tree = to;
	const top = join(base, place.path.split("/")[0] as string);
	const uid = IS_ROOT ? { root: 0, user: NOBODY }[place.as] : undefined;
	if (uid !== undefined && statSync(tree).uid !== uid) {
		const given = Bun.spawnSync(["find", top, "-type", "d", "-exec", "chown", `${uid}:${uid}`, "{}", "+"]);
		expect(given.success).toBe(true);
	}
	chmodSync(top, place.mode);
}

/** A minimal environment, as in a new shell of the user. */
function spawnThere(place: Place, command: readonly string[], env: Record<string, string> = {}) {
	const drop = IS_ROOT && place.as === "user";
	const prefix = drop ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"] : [];
	return Bun.spawn([...prefix, join(base, "bin", "bun"), ...command], {
		cwd: tree,
		detached: true,
		env: {
			PATH: `${join(base, "bin")}:/usr/local/bin:/usr/bin:/bin`,
			HOME: dirname(tree),
			npm_config_registry: NOWHERE,
			BUN_CONFIG_REGISTRY: NOWHERE,
			HTTP_PROXY: NOWHERE,
			HTTPS_PROXY: NOWHERE,
			NO_PROXY: "127.0.0.1,localhost",
			...env,
		},
		stdout: "pipe",
		stderr: "pipe",
	});
}

/** The output up to the line with `curl`, and that line. */
async function bannerOf(server: Subprocess<"ignore", "pipe", "pipe">): Promise<{ text: string; curl: string }> {
	const errors = new Response(server.stderr).text();
	let text = "";
	for await (const chunk of server.stdout) {
		text += new TextDecoder().decode(chunk);
		const curl = /^curl .*\n/m.exec(text)?.[0];
		if (curl !== undefined) return { text, curl: curl.trim() };
	}
	throw new Error(`it ended without a banner: ${text}${await errors}`);
}

/** Runs `run start` until the model has answered and a person has signed in to the console, then sends Ctrl-C. */
async function startAndAsk(place: Place): Promise<void> {
	const server = spawnThere(place, ["run", "start"], { PORT: String(quietPort()) });
	running.push(server);
	const { text, curl } = await bannerOf(server);
	const shell = Bun.spawn(["sh", "-c", `${curl} -sS`], { stdout: "pipe", stderr: "inherit" });
	expect(await new Response(shell.stdout).json()).toMatchObject({ object: "chat.completion" });
	const link = /http:\S+\/customer\/\S+/.exec(text)?.[0] ?? "";
	const open = (headers: Record<string, string>) => fetch(link, { redirect: "manual", headers });
	expect((await open({ "x-forwarded-for": "10.1.2.3" })).status).toBe(403);
	expect((await open({})).headers.getSetCookie()[0]).toContain("session_token=");
	const postmaster = findPostmaster(cluster());
	expect(postmaster?.ready).toBe(true);
	expect(statSync(cluster()).mode & 0o777).toBe(0o700);
	process.kill(-server.pid, "SIGINT");
	expect(await server.exited).toBe(0);
	expect(findPostmaster(cluster())).toBeUndefined();
}

/** Runs `run test` after its checks, for one file with a database; all test files get theirs in the same way. */
async function runTest(place: Place): Promise<void> {
	// The test's database must be in the temporary folder of this run, not of the outer run.
	const temporary = join(tree, ".data", "tmp");
	mkdirSync(temporary, { recursive: true });
	const drop = IS_ROOT && place.as === "user";
	const home = join(temporary, `tollgate-test-${drop ? NOBODY : process.getuid?.()}`);
	if (drop) for (const path of [dirname(temporary), temporary]) chownSync(path, NOBODY, NOBODY);
	// The start that runs in parallel creates its own database.
	if (!drop) {
		const folder = memoryFolder(temporary) ?? home;
		mkdirSync(folder, { recursive: true, mode: 0o755 });
		await placeCluster(folder);
	}
	const child = spawnThere(place, ["test", "--timeout", "30000", "test/billing/top-ups.test.ts"], {
		TMPDIR: temporary,
	});
	running.push(child);
	const [, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
	expect(errors).toContain(" 0 fail");
	expect(await child.exited).toBe(0);
	expect(existsSync(join(home, "lock"))).toBe(true);
}

/**
 * Builds without bytecode, which does not depend on the folder and takes two thirds of the time; other tests build it.
 */
function buildWithoutBytecode(): void {
	const path = join(tree, "src", "build.ts");
	const text = readFileSync(path, "utf8");
	expect(text).toContain("bytecode: true");
	// Removes the hard link first, which may lead to the original cache.
	rmSync(path);
	writeFileSync(path, text.replace("bytecode: true", "bytecode: false"));
}

async function buildThere(place: Place): Promise<void> {
	if (!LONG) buildWithoutBytecode();
	const child = spawnThere(place, ["run", "build"], { COMMIT: "here" });
	running.push(child);
	const errors = await new Response(child.stderr).text();
	expect({ code: await child.exited, errors }).toEqual({ code: 0, errors: expect.stringContaining("src/build.ts") });
	const built = Bun.spawnSync([join(tree, "dist", "tollgate"), "--version"]);
	expect(built.stdout.toString()).toEndWith("+here\n");
}

/** A private home folder whose path has 200 characters, including spaces and special characters. */
function homeOf(as: Place["as"]): Place {
	const name = `-O'Brien's %20 #(ü) 😀\n${"a long name ".repeat(20)}`.slice(
		0,
		200 - base.length - "//toll gate".length - 1,
	);
	const home: Place = { path: `${name}-/toll gate`, mode: 0o700, as };
	expect(join(base, home.path)).toHaveLength(200);
	moveTo(home);
	return home;
}

// As root, the next test covers this case under stricter conditions.
test.if(LONG || !IS_ROOT)("start, test or build works in a private home folder with a long, unusual path", async () => {
	const home = homeOf("user");
	await Promise.all([startAndAsk(home), buildThere(home), runTest(home)]);
});

test.if(IS_ROOT)("start works for root in a private home folder, with Postgres as another user", async () => {
	const home = homeOf("root");
	await Promise.all([startAndAsk(home), ...(LONG ? [runTest(home)] : [])]);
});
