import { expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { silentLog } from "../../src/base/log.ts";
import { startEmbeddedPostgres } from "../../src/db/embedded.ts";
import { findPostmaster, removeForeignPidFile } from "../../src/db/postmaster.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { waitFor } from "../support/wait.ts";

const cluster = join(temporaryFolder(), "cluster");
mkdirSync(cluster);
const pidFile = join(cluster, "postmaster.pid");

function started(argv: string[], cwd?: string) {
	const child = Bun.spawn(argv, { stdout: "pipe", ...(cwd === undefined ? {} : { cwd }) });
	atEnd(async () => {
		child.kill("SIGKILL");
		await child.exited;
	});
	return child;
}

/** As the system shows it, `Z` for one that ended and was not waited for; undefined if there is none. */
function stateOf(pid: number | undefined): string | undefined {
	try {
		return /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];
	} catch {
		return undefined;
	}
}

/** Whether the file is there after a start has looked at it. */
function isKept(pid: number): boolean {
	writeFileSync(pidFile, `${pid}\n${cluster}\n1\n5432\n\n127.0.0.1\n\nready   \n`);
	removeForeignPidFile(cluster);
	return existsSync(pidFile);
}

test("the pid file of a server that was killed and not waited for stays while processes of it live, and no longer", async () => {
	// The shell becomes a program that waits for no child of its own.
	const parent = started(["sh", "-c", "sleep 0.1 & echo $!; exec sleep 600"]);
	const { value } = await parent.stdout.getReader().read();
	const unreaped = Number(new TextDecoder().decode(value));
	await waitFor(() => stateOf(unreaped) === "Z", "its end");
	const survivor = started(["sleep", "600"], cluster);
	expect(isKept(unreaped)).toBe(true);
	survivor.kill("SIGKILL");
	await survivor.exited;
	expect(isKept(unreaped)).toBe(false);
});

test("that of a stranger goes, whoever works in the folder, and that of nobody is the server's own to judge", async () => {
	const stranger = started(["sleep", "600"], cluster);
	expect(isKept(stranger.pid)).toBe(false);
	stranger.kill("SIGKILL");
	await stranger.exited;
	expect(isKept(stranger.pid)).toBe(true);
});

test("no server is started beside a child of the one before, which would go on to confirm what is forgotten", async () => {
	const dataDir = mkdtempSync(join(quickFolder(), "tollgate-survivor-"));
	atEnd(() => rmSync(dataDir, { recursive: true, force: true }));
	const begin = () => startEmbeddedPostgres({ log: silentLog }, { dataDir, watched: false });
	const { url } = await begin();
	const client = postgres(url, { max: 1, onnotice: () => {} });
	await client`create table seen (at timestamptz)`;
	const [row] = await client<{ pid: number }[]>`select pg_backend_pid() as pid`;
	// It commits without waiting for anybody, so that it does not notice that its server has gone.
	const work = client.unsafe(`do $$ begin
		while (select count(*) from seen) < 1 or clock_timestamp() < (select min(at) from seen) + interval '1.5 s' loop
			insert into seen values (clock_timestamp()); commit;
		end loop; end $$`);
	work.catch(() => {});
	const other = postgres(url, { max: 1, onnotice: () => {} });
	await waitFor(async () => (await other`select 1 from seen limit 1`).length === 1, "its first commit");
	await other.end();
	const { pid } = findPostmaster(join(dataDir, "postgres", "cluster")) as { pid: number };
	process.kill(pid, "SIGKILL");
	// Nobody waits for it before the next start: that takes a turn of this loop.
	while (stateOf(pid) !== "Z");
	const next = await begin();
	try {
		expect([undefined, "Z"]).toContain(stateOf(row?.pid));
	} finally {
		await client.end({ timeout: 0 });
		await next.stop();
	}
}, 60_000);
