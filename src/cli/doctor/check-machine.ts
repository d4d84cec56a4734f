import fs from "node:fs";
import { dirname, join } from "node:path";
import { tryFileLock } from "../../base/file-lock.ts";
import type { Config } from "../../config.ts";
import { checkHost, claimPort, listeningUrl, reachableUrl } from "../../planes/listening-address.ts";
import { createFindings, type Finding } from "./finding.ts";

const GIB = 1024 ** 3;
/** Free space below which a disk counts as full. A journal needs 8 MiB, the embedded server's log up to 1 GiB. */
const FREE_BYTES_BROKEN = 64 * 1024 ** 2;
const FREE_BYTES_WARNING = 2 * GIB;
const SYNC_MS_WARNING = 20;
/** Types of network file systems, as statfs(2) reports them. */
const NETWORK_SYSTEMS: readonly number[] = [0x6969, 0xff534d42, 0xfe534d42, 0x01021997, 0x65735546];
const MEMORY_SYSTEMS: readonly number[] = [0x01021994, 0x858458f6];
const OPEN_FILES_MIN = 4_096;
const ASK_MS = 3_000;

/** System calls that the checks use; tests replace them. */
interface System {
	statfs(folder: string): Pick<fs.StatsFs, "type" | "bsize" | "bavail">;
	/** Returns the milliseconds for writing and syncing one block. */
	timeSync(path: string): number;
	/** Returns false if files in this folder cannot be locked. */
	canLock(path: string): boolean;
	/** Returns the content of /proc/self/limits; empty on systems without it. */
	limits(): string;
}

const THIS_SYSTEM: System = {
	statfs: fs.statfsSync,
	timeSync(path) {
		const fd = fs.openSync(path, "w", 0o600);
		try {
			fs.writeSync(fd, Buffer.alloc(4096, 1));
			const startMs = performance.now();
			fs.fsyncSync(fd);
			return performance.now() - startMs;
		} finally {
			fs.closeSync(fd);
		}
	},
	canLock(path) {
		const lock = tryFileLock(path);
		lock?.release();
		return lock !== undefined;
	},
	limits: () => (fs.existsSync("/proc/self/limits") ? fs.readFileSync("/proc/self/limits", "utf8") : ""),
};

/** Checks that DATA_DIR survives a reboot, has free space, and can hold a journal, which is written and locked. */
export function checkDisk(
	{ dataDir, journal, production }: Pick<Config, "dataDir" | "journal" | "production">,
	system: Partial<System> = {},
): readonly Finding[] {
	const { statfs, timeSync, canLock } = { ...THIS_SYSTEM, ...system };
	const found = createFindings("disk");
	const folder = presentFolder(dataDir);
	const probe = join(folder, `.tollgate-doctor-${process.pid}`);
	try {
		const syncMs = timeSync(probe);
		const said = `${dataDir} is writable; fsync takes ${syncMs.toFixed(1)} ms`;
		const isSlow = syncMs > SYNC_MS_WARNING && journal === "host";
		found.judge(said, "With JOURNAL=host every answer waits for fsync: use a faster disk.", isSlow);
		if (!canLock(probe)) found.broken(`files in ${folder} cannot be locked`, "Put DATA_DIR on a local disk.");
	} catch (error) {
		found.broken(
			`${dataDir} cannot be written: ${(error as Error).message}`,
			"Free space, or set DATA_DIR to a folder that the user of the service can write.",
		);
	} finally {
		if (fs.existsSync(probe)) fs.rmSync(probe);
	}
	const { type, bsize, bavail } = statfs(folder);
	const bytes = bsize * bavail;
	const free = `${(bytes / GIB).toFixed(1)} GiB are free on the disk of ${dataDir}`;
	const room = "Free space, or put DATA_DIR on another disk. With a full disk no request is admitted.";
	found.judge(free, room, bytes < FREE_BYTES_WARNING, bytes < FREE_BYTES_BROKEN);
	// Some runtimes return the type as a signed number.
	if (NETWORK_SYSTEMS.includes(type >>> 0))
		found.warn(
			`${dataDir} is on a network file system, whose locks and syncs are unreliable`,
			"Put DATA_DIR on a local disk; with JOURNAL=remote nothing on it must survive.",
		);
	if (MEMORY_SYSTEMS.includes(type >>> 0)) {
		const judge = production && journal !== "remote" ? found.broken : found.warn;
		judge(`${dataDir} is in memory: a reboot loses it`, "Put DATA_DIR on a disk or a persistent volume.");
	}
	return found.list;
}

function presentFolder(path: string): string {
	return fs.existsSync(path) ? path : presentFolder(dirname(path));
}

/** Checks that `serve` can listen at HOST and PORT, and open as many connections as a busy gateway needs. */
export async function checkAddress(
	{ host, port }: Pick<Config, "host" | "port">,
	{ limits }: Pick<System, "limits"> = THIS_SYSTEM,
): Promise<readonly Finding[]> {
	const found = createFindings("address");
	try {
		await checkHost(host);
		claimPort(host, port);
		found.ok(port === 0 ? "PORT=0: the system chooses a port at each start" : `${listeningUrl(host, port)} is free`);
	} catch (error) {
		const isTaken = (error as { code?: unknown }).code === "EADDRINUSE";
		if (isTaken && (await isTollgate(host, port)))
			found.ok(`${listeningUrl(host, port)} is already served by Tollgate`);
		else found.failed(error);
	}
	const openFiles = Number(/^Max open files +(\d+)/m.exec(limits())?.[1] ?? Number.POSITIVE_INFINITY);
	if (openFiles < OPEN_FILES_MIN)
		found.warn(
			`${openFiles} open files are allowed; each streamed answer needs two`,
			`Raise the limit: \`ulimit -n ${OPEN_FILES_MIN}\` or more, LimitNOFILE= of the unit, or --ulimit nofile= of the container.`,
		);
	return found.list;
}

async function isTollgate(host: string, port: number): Promise<boolean> {
	const options = { signal: AbortSignal.timeout(ASK_MS), redirect: "manual", proxy: "" } as const;
	const [live, status] = await Promise.all(
		["/livez", "/status"].map((path) => fetch(`${reachableUrl(host, port)}${path}`, options).catch(() => undefined)),
	);
	return (await live?.text().catch(() => "")) === "ok\n" && status?.status === 200;
}
