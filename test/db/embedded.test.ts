import { afterEach, expect, test } from "bun:test";
import {
	appendFileSync,
	chmodSync,
	chownSync,
	copyFileSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readFileSync,
	rmSync,
	statSync,
	writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import postgres from "postgres";
import { tryFileLock } from "../../src/base/file-lock.ts";
import { createLog, silentLog } from "../../src/base/log.ts";
import { runningEmbeddedUrl, startEmbeddedPostgres } from "../../src/db/embedded.ts";
import { findPostmaster } from "../../src/db/postmaster.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import { placeCluster } from "../support/made-cluster.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { childrenOf } from "../support/processes.ts";
import { waitFor } from "../support/wait.ts";

const IS_ROOT = process.getuid?.() === 0;
const HOLDER = join(import.meta.dir, "embedded-holder.ts");
const folders: string[] = [];
const holders: Subprocess[] = [];

afterEach(async () => {
	for (const holder of holders.splice(0)) {
		holder.kill("SIGKILL");
		await holder.exited;
	}
	for (const folder of folders.splice(0)) {
		const left = findPostmaster(clusterOf(folder));
		if (left !== undefined) {
			process.kill(left.pid, "SIGINT");
			await waitFor(() => findPostmaster(clusterOf(folder)) === undefined, "the server to end");
		}
		rmSync(folder, { recursive: true, force: true });
	}
});

/** A folder with an initialized cluster, which tests copy. */
const seed = temporaryFolder(quickFolder());
chmodSync(seed, 0o755);
await placeCluster(seed);

const clusterOf = (folder: string) => join(folder, "postgres", "cluster");
/** Nothing is synced to disk: tests kill processes but not the machine, so written data survives. */
const SETTINGS = { fsync: "off" };
const start = (dataDir: string) => startEmbeddedPostgres({ log: silentLog }, { dataDir, settings: SETTINGS });

function newFolder(mode = 0o755): string {
	const folder = mkdtempSync(join(quickFolder(), "tollgate-embedded-"));
	chmodSync(folder, mode);
	folders.push(folder);
	return folder;
}

/** Copies a folder whose database was started once before, for tests of later starts. */
function usedFolder(): string {
	const folder = newFolder();
	copyFileSync(join(seed, "postgres.password"), join(folder, "postgres.password"));
	// Keeps owners and file modes, because the server requires them.
	const { success } = Bun.spawnSync(["cp", "-Rp", join(seed, "postgres"), join(folder, "postgres")]);
	if (!success) throw new Error("the cluster could not be copied");
	return folder;
}

async function hold(
	folder: string,
	prefix: string[] = [],
): Promise<{ process: Subprocess; url: string; adopted: boolean }> {
	const holder = Bun.spawn([...prefix, process.execPath, HOLDER, folder], {
		env: { ...process.env, HOME: folder },
		stdout: "pipe",
		stderr: "inherit",
	});
	holders.push(holder);
	for await (const chunk of holder.stdout) return { process: holder, ...JSON.parse(new TextDecoder().decode(chunk)) };
	throw new Error("the holder ended without an address");
}

async function query<Row extends Record<string, unknown>>(url: string, text: string): Promise<Row[]> {
	const client = postgres(url, { max: 1, onnotice: () => {} });
	try {
		return [...(await client.unsafe(text))] as unknown as Row[];
	} finally {
		await client.end({ timeout: 1 });
	}
}

test.if(LONG)("the embedded server is ready after an archive recovery once it accepts writes", async () => {
	const folder = usedFolder();
	const cluster = clusterOf(folder);
	const { uid, gid } = statSync(cluster);
	// The server is consistent at once but replays its log for a while before it accepts writes.
	appendFileSync(join(cluster, "postgresql.auto.conf"), "restore_command = 'sleep 0.3; false'\n");
	writeFileSync(join(cluster, "recovery.signal"), "");
	chownSync(join(cluster, "recovery.signal"), uid, gid);
	const restored = await start(folder);
	const [state] = await query(restored.url, "select pg_is_in_recovery() as recovering");
	expect(state).toEqual({ recovering: false });
	await query(restored.url, "create table t (a int)");
	await restored.stop();
});

test.if(IS_ROOT)("the embedded server runs as an unprivileged user if the service runs as root", async () => {
	const server = await start(seed);
	try {
		const postmaster = findPostmaster(clusterOf(seed));
		const owner = statSync(`/proc/${postmaster?.pid}`).uid;
		expect(owner).not.toBe(0);
		expect(statSync(clusterOf(seed))).toMatchObject({ uid: owner, mode: 0o040700 });
		expect(statSync(join(seed, "postgres.password")).mode & 0o777).toBe(0o600);
	} finally {
		await server.stop();
	}
});

test.if(LONG && IS_ROOT)(
	"the embedded server starts from a data folder that root restored",
	async () => {
		const folder = newFolder(0o700);
		copyFileSync(join(seed, "postgres.password"), join(folder, "postgres.password"));
		expect(Bun.spawnSync(["cp", "-R", join(seed, "postgres"), join(folder, "postgres")]).success).toBe(true);
		expect(statSync(join(clusterOf(folder), "PG_VERSION")).uid).toBe(0);
		const server = await start(folder);
		expect(await query(server.url, "select 1 as one")).toEqual([{ one: 1 }]);
		await server.stop();
	},
	60_000,
);

/** Environment of a process; undefined if the process has ended, as some of the server's children soon do. */
function environmentOf(pid: number): string | undefined {
	try {
		return readFileSync(`/proc/${pid}/environ`, "latin1");
	} catch {
		return undefined;
	}
}

test("the embedded server outlives its parent process and is used by the next one", async () => {
	const folder = usedFolder();
	const { process: parent, url } = await hold(folder, ["env", "KEY_PEPPER=canary-secret"]);
	const before = findPostmaster(clusterOf(folder));
	const postmaster = before?.pid as number;
	await query(url, "create table t (a int); insert into t values (7)");
	const environments = [postmaster, ...childrenOf(postmaster)].flatMap((pid) => environmentOf(pid) ?? []);
	expect(environments.length).toBeGreaterThan(2);
	expect(environments.join()).toContain("TZ=UTC");
	for (const text of environments) expect(text).not.toContain("canary");
	parent.kill("SIGKILL");
	await parent.exited;
	const adopted = await start(folder);
	expect(adopted).toMatchObject({ adopted: true, url });
	expect(findPostmaster(clusterOf(folder))).toEqual(before as NonNullable<typeof before>);
	expect(await query<{ a: number }>(adopted.url, "select a from t")).toEqual([{ a: 7 }]);
	await adopted.stop();
	expect(findPostmaster(clusterOf(folder))).toBeUndefined();
}, 60_000);

test("the embedded server restarts at the same address after it was killed", async () => {
	const folder = usedFolder();
	const [own, other] = await Promise.all([start(folder), hold(folder)]);
	await query(own.url, "create table t (a int); insert into t values (7)");
	const killed = findPostmaster(clusterOf(folder))?.pid as number;
	process.kill(killed, "SIGKILL");
	await waitFor(() => {
		const pid = findPostmaster(clusterOf(folder))?.pid;
		return pid !== undefined && pid !== killed && runningEmbeddedUrl(folder) !== undefined;
	}, "a new server");
	expect(runningEmbeddedUrl(folder)).toBe(own.url);
	expect(await query<{ a: number }>(other.url, "select a from t")).toEqual([{ a: 7 }]);
	other.process.kill("SIGTERM");
	expect(await other.process.exited).toBe(0);
	expect(await query(own.url, "select 1 as one")).toEqual([{ one: 1 }]);
	await own.stop();
	expect(findPostmaster(clusterOf(folder))).toBeUndefined();
}, 60_000);

test("the embedded server ignores a pid file that names another process", async () => {
	const folder = usedFolder();
	const first = await start(folder);
	await query(first.url, "create table t (a int); insert into t values (7)");
	const pidFile = join(clusterOf(folder), "postmaster.pid");
	const text = readFileSync(pidFile, "utf8");
	await first.stop();

	// Starts another server of the same user, whose pid the stale pid file contains: PostgreSQL would be deceived.
	const other = usedFolder();
	const stranger = await start(other);
	const pid = findPostmaster(clusterOf(other))?.pid;
	writeFileSync(pidFile, text.replace(/^\d+/, String(pid)));
	expect(runningEmbeddedUrl(folder)).toBeUndefined();
	const second = await start(folder);
	expect(second.adopted).toBe(false);
	expect(findPostmaster(clusterOf(folder))?.pid).not.toBe(pid as number);
	expect(await query<{ a: number }>(second.url, "select a from t")).toEqual([{ a: 7 }]);
	await second.stop();
	expect(await query(stranger.url, "select 1 as one")).toEqual([{ one: 1 }]);
	await stranger.stop();
}, 60_000);

test("the embedded server is shared by several starts and ends with the last stop", async () => {
	const folder = newFolder(0o700);
	const half = join(folder, "postgres", "initdb-1");
	mkdirSync(half, { recursive: true });
	writeFileSync(join(half, "PG_VERSION"), "18\n");
	const [a, b, c] = await Promise.all([start(folder), start(folder), hold(folder)]);
	expect([a.adopted, b.adopted, c.adopted].filter((adopted) => !adopted)).toHaveLength(1);
	expect(new Set([a.url, b.url, c.url]).size).toBe(1);
	await Promise.all([a.stop(), b.stop()]);
	expect(await query(c.url, "select 1 as one")).toEqual([{ one: 1 }]);
	expect(existsSync(half)).toBe(false);
	c.process.kill("SIGTERM");
	expect(await c.process.exited).toBe(0);
	expect(findPostmaster(clusterOf(folder))).toBeUndefined();
}, 60_000);

test("the embedded server starts again after a stop that was in progress", async () => {
	const folder = usedFolder();
	const first = await start(folder);
	const stopped = first.stop();
	const second = await start(folder);
	await stopped;
	expect(await query(second.url, "select 1 as one")).toEqual([{ one: 1 }]);
	await second.stop();
}, 60_000);

test("the embedded server reports a stop that could not get the lock", async () => {
	const dataDir = usedFolder();
	const said: string[] = [];
	const log = createLog({ level: "warn", write: (line) => void said.push(JSON.parse(line).message) });
	const server = await startEmbeddedPostgres({ log }, { dataDir, settings: SETTINGS, lockMsMax: 100 });
	const other = tryFileLock(join(dataDir, "postgres.lock"));
	expect(await server.stop()).toBe(false);
	other?.release();
	expect(said).toEqual([
		"another process keeps starting or stopping the embedded PostgreSQL: leaving it to that process",
	]);
}, 60_000);
