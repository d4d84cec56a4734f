import {
	appendFileSync,
	chmodSync,
	chownSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	rmSync,
	statSync,
	writeFileSync,
} from "node:fs";
import { join } from "node:path";
import connect from "postgres";
import type { OwnPostgres } from "../chaos/own-postgres.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { waitFor } from "../support/wait.ts";

const LEFT_OUT = /\/(postmaster\.(pid|opts)|pg_wal\/.+|pgsql_tmp.*|pg_internal\.init)$/;

/**
 * A backup as an operator makes it: a copy of the running cluster and the later write-ahead log. The embedded server
 * has no `pg_basebackup`, so this calls `pg_backup_start`, copies the files and calls `pg_backup_stop`.
 */
export function createBackup() {
	const folder = mkdtempSync(join(quickFolder(), "tollgate-backup-"));
	const [base, archive, kept] = [join(folder, "base"), join(folder, "archive"), join(folder, "kept")];
	// The server may run as another user, who must be able to write to this folder.
	chmodSync(folder, 0o755);
	mkdirSync(archive);
	chmodSync(archive, 0o777);
	/** Replaces the data of a stopped server by the base backup. */
	function copyBaseTo(cluster: string): void {
		copyAll(base, cluster);
		const label = join(cluster, "backup_label");
		const { uid, gid } = statSync(base);
		chownSync(label, uid, gid);
	}

	return {
		// Archives a log file under a temporary name and renames it when it is complete.
		settings: {
			archive_mode: "on",
			archive_command: `cp "%p" "${archive}/%f.part" && mv "${archive}/%f.part" "${archive}/%f"`,
		},
		async takeBase({ url, cluster }: OwnPostgres) {
			await inSession(url, async (session) => {
				await session`select pg_backup_start('test', true)`;
				copyRunning(cluster, base);
				const [row] = await session`select labelfile from pg_backup_stop(true)`;
				writeFileSync(join(base, "backup_label"), row?.labelfile);
			});
		},
		/** Archives the log up to now. A restore will lack all later commits. */
		async keepLog({ url }: OwnPostgres) {
			await inSession(url, async (session) => {
				const [row] = await session`select pg_walfile_name(pg_switch_wal()) as last`;
				await waitFor(() => readdirSync(archive).includes(row?.last), "the log to be archived", 30_000);
			});
			copyAll(archive, kept);
		},
		copyBaseTo,
		/** Replaces the stopped server's data by the backup, starts the server and waits for the end of recovery. */
		async restoreTo(postgres: OwnPostgres) {
			copyBaseTo(postgres.cluster);
			appendFileSync(join(postgres.cluster, "postgresql.auto.conf"), `restore_command = 'cp "${kept}/%f" "%p"'\n`);
			writeFileSync(join(postgres.cluster, "recovery.signal"), "");
			const { uid, gid } = statSync(base);
			chownSync(join(postgres.cluster, "recovery.signal"), uid, gid);
			// Without `hot_standby`, the embedded server counts as ready only when it accepts writes.
			await postgres.start();
		},
		remove: () => rmSync(folder, { recursive: true, force: true }),
	};
}

export async function inSession<T>(url: string, work: (session: connect.Sql) => Promise<T>): Promise<T> {
	const session = connect(url, { max: 1, onnotice: () => {} });
	try {
		return await work(session);
	} finally {
		await session.end();
	}
}

/** Replaces `to` by a copy. */
export function copyAll(from: string, to: string): void {
	rmSync(to, { recursive: true, force: true });
	if (!Bun.spawnSync(["cp", "-a", from, to]).success) throw new Error(`${from} could not be copied`);
}

/** Files may appear, vanish or change while they are copied; the replay of the log repairs them. */
function copyRunning(from: string, to: string): void {
	const copied = Bun.spawnSync(["cp", "-a", from, to], { stderr: "pipe" });
	const problems = copied.stderr.toString().split("\n");
	const other = problems.filter((line) => line !== "" && !line.includes("No such file or directory"));
	if (other.length > 0) throw new Error(other.join("\n"));
	for (const path of new Bun.Glob("**/*").scanSync({ cwd: to, absolute: true }))
		if (LEFT_OUT.test(path)) rmSync(path, { force: true });
}
