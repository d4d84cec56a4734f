import { appendFileSync, readdirSync, readFileSync } from "node:fs";

/** Of Linux: `sysconf(_SC_CLK_TCK)` is 100 wherever Bun runs. */
const TICKS_PER_S = 100;
/** What a server process used since it was last looked at and its end is not seen; the sum of all is. */
const LOOK_MS = 500;

/** What a file of tests used, told by its process at the file's end. Seconds of CPU, user and system. */
interface FileTimes {
	readonly pid: number;
	readonly file: string;
	readonly endedAtMs: number;
	readonly ownS: number;
	/** Processes that it started and that ended; a browser's own may be handed to others and are missing then. */
	readonly childrenS: number;
}

interface ProcessTimes {
	readonly parent: number;
	readonly ownS: number;
	readonly reapedS: number;
}

/** Used by this process so far: what a busy machine does meanwhile, or a stall of it, is not counted. */
export function cpuMs(): number {
	const { user, system } = process.cpuUsage();
	return (user + system) / 1000;
}

/** Called by the preload for each file: appends what the file used to `logPath`. */
export function createFileTimesWriter(logPath: string): (file: string) => void {
	let before: ProcessTimes = { parent: 0, ownS: 0, reapedS: 0 };
	return (file) => {
		const now = timesOf(process.pid);
		if (now === undefined) return;
		const times: FileTimes = {
			pid: process.pid,
			file,
			endedAtMs: Date.now(),
			ownS: now.ownS - before.ownS,
			childrenS: now.reapedS - before.reapedS,
		};
		before = now;
		appendFileSync(logPath, `${JSON.stringify(times)}\n`);
	};
}

/**
 * Looks at the database server's processes until it is read: the name of a test's database begins with the number of
 * the process that made it, so what is used on it belongs to the file that this process ran.
 */
export function watchServer(postmasterPid: number) {
	const databases = new Map<string, { firstSeenMs: number; usedS: number }>();
	const seen = new Map<number, number>();
	const usedBefore = sumOf(postmasterPid);
	const look = () => {
		for (const [pid, times] of allTimes()) {
			if (times.parent !== postmasterPid) continue;
			const database = / (test_\S+) /.exec(read(`/proc/${pid}/cmdline`))?.[1];
			if (database === undefined) continue;
			const known = databases.get(database) ?? { firstSeenMs: Date.now(), usedS: 0 };
			databases.set(database, known);
			known.usedS += times.ownS - (seen.get(pid) ?? 0);
			seen.set(pid, times.ownS);
		}
	};
	const timer = setInterval(look, LOOK_MS);
	return {
		read(logPath: string): { totalS: number; files: readonly (FileTimes & { databaseS: number })[] } {
			clearInterval(timer);
			look();
			const files = readFileSync(logPath, "utf8")
				.split("\n")
				.filter((line) => line !== "")
				.map((line) => ({ ...(JSON.parse(line) as FileTimes), databaseS: 0 }));
			for (const [name, { firstSeenMs, usedS }] of databases) {
				const pid = Number(/_(\d+)_[0-9a-f]+$/.exec(name)?.[1]);
				const owner = files.find((file) => file.pid === pid && firstSeenMs <= file.endedAtMs);
				if (owner) owner.databaseS += usedS;
			}
			return { totalS: sumOf(postmasterPid) - usedBefore, files };
		},
	};
}

function sumOf(parent: number): number {
	let usedS = 0;
	for (const [pid, times] of allTimes()) {
		if (pid === parent) usedS += times.ownS + times.reapedS;
		else if (times.parent === parent) usedS += times.ownS;
	}
	return usedS;
}

function* allTimes(): Iterable<[number, ProcessTimes]> {
	for (const name of readdirSync("/proc")) {
		const pid = Number(name);
		const times = Number.isInteger(pid) ? timesOf(pid) : undefined;
		if (times) yield [pid, times];
	}
}

/** The fields of `proc(5)`, counted behind the name, which may hold anything. */
function timesOf(pid: number): ProcessTimes | undefined {
	const stat = read(`/proc/${pid}/stat`);
	const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
	if (fields.length < 15) return undefined;
	const ticks = (at: number) => Number(fields[at]) / TICKS_PER_S;
	return { parent: Number(fields[1]), ownS: ticks(11) + ticks(12), reapedS: ticks(13) + ticks(14) };
}

function read(path: string): string {
	try {
		return readFileSync(path, "utf8");
	} catch {
		return "";
	}
}
