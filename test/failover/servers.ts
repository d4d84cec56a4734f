import { chownSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startOwnPostgres } from "../chaos/own-postgres.ts";
import { copyAll, createBackup, inSession } from "../restore/base-backup.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { waitFor } from "../support/wait.ts";

/** Starts a primary and a standby that replicates the primary. */
export async function startServerPair(settings: Readonly<Record<string, string>> = {}) {
	const backup = createBackup();
	const both = { fsync: "off", max_wal_senders: "4", ...settings };
	const primary = await startOwnPostgres({ ...both, ...backup.settings });
	const standby = await startOwnPostgres(both);
	await standby.stop();
	await backup.takeBase(primary);
	backup.copyBaseTo(standby.cluster);
	let [leader, follower] = [primary, standby];
	const wire = startTcpProxy({ hostname: "127.0.0.1", port: primary.port });
	const { username, password } = new URL(primary.url);
	const line = `host=127.0.0.1 port=${wire.port} user=${username} password=${decodeURIComponent(password)} application_name=standby`;
	const place = (name: string, text: string) => {
		const path = join(follower.cluster, name);
		writeFileSync(path, text, { flag: "a" });
		const { uid, gid } = statSync(follower.cluster);
		chownSync(path, uid, gid);
	};
	/** Settles when the promoted server accepts writes. */
	let promoted: Promise<void> | undefined;
	async function startFollower(): Promise<void> {
		place("postgresql.auto.conf", `primary_conninfo = '${line}'\nrestore_command = ''\n`);
		place("standby.signal", "");
		promoted = follower.start();
		promoted.catch(() => {});
		await inSession(leader.url, async (session) => {
			const follows = () => session`select 1 from pg_stat_replication where state = 'streaming'`;
			await waitFor(async () => (await follows()).length === 1, "the standby to follow", 30_000);
		});
	}
	const copy = `${primary.cluster}.copy`;

	const pair = {
		primary,
		standby,
		/** Makes commits on the primary wait for the standby. */
		waitForStandby: () =>
			inSession(primary.url, async (session) => {
				await session.unsafe("alter system set synchronous_standby_names = '*'");
				await session`select pg_reload_conf()`;
				const isSync = () => session`select 1 from pg_stat_replication where sync_state = 'sync'`;
				await waitFor(async () => (await isSync()).length === 1, "the standby to be synchronous", 10_000);
			}),
		/** Stops the replication, so that a promotion loses the commits made afterwards. */
		cutReplication: () => wire.cut(),
		resumeReplication: () => wire.restore(),
		/** Makes the standby the primary, with the commits that it has received. */
		async promote() {
			place("promote", "");
			process.kill(Number(readFileSync(join(follower.cluster, "postmaster.pid"), "utf8").split("\n")[0]), "SIGUSR1");
			await promoted;
		},
		/** Makes the crashed former primary a standby of the new one; then `promote` exchanges their roles again. */
		async follow() {
			[leader, follower] = [follower, leader];
			const base = createBackup();
			await base.takeBase(leader);
			base.copyBaseTo(follower.cluster);
			base.remove();
			wire.cut();
			wire.aim(leader.port);
			wire.restore();
			await startFollower();
		},
		/** Stops the primary, copies its data folder and starts it again. */
		async snapshot() {
			await primary.stop();
			copyAll(primary.cluster, copy);
			await primary.start();
		},
		/** Kills the primary and starts it with the copied data folder: the same server and timeline with an older state. */
		async rollBack() {
			await primary.crash();
			copyAll(copy, primary.cluster);
			await primary.start();
		},
		async destroy() {
			wire.stop();
			await Promise.all([primary.destroy(), standby.destroy()]);
			backup.remove();
		},
	};
	try {
		await startFollower();
	} catch (error) {
		await pair.destroy();
		throw error;
	}
	return pair;
}
