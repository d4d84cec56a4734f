import { expect, test } from "bun:test";
import { chmodSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import { placeCluster } from "../support/made-cluster.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { isRunning } from "../support/processes.ts";
import { waitFor } from "../support/wait.ts";

const CHILD = join(import.meta.dir, "embedded-ended-child.ts");

/** Ids of the processes that work in `folder`, as all of PostgreSQL's processes do. */
function workingIn(folder: string): number[] {
	return readdirSync("/proc")
		.filter((name) => /^\d+$/.test(name))
		.map(Number)
		.filter((pid) => {
			try {
				return readlinkSync(`/proc/${pid}/cwd`).startsWith(folder) && isRunning(pid);
			} catch {
				return false;
			}
		});
}

test.if(process.platform === "linux").each([
	["it has been started and is nowhere on record", true],
	["it is used", false],
	...(LONG
		? ([
				["its files are made", true],
				["it is on record", false],
				["it is ready", false],
			] as const)
		: []),
] as const)(
	"a process that exits when %s leaves no server running",
	async (moment, atTheFirstStart) => {
		const folder = temporaryFolder(quickFolder());
		chmodSync(folder, 0o755);
		atEnd(() => {
			for (const pid of workingIn(folder)) process.kill(pid, "SIGKILL");
		});
		if (!atTheFirstStart) await placeCluster(folder);
		const child = Bun.spawn([process.execPath, CHILD, folder, moment], { stdio: ["ignore", "inherit", "inherit"] });
		expect(await child.exited).toBe(3);
		await waitFor(() => workingIn(folder).length === 0, "all of its processes to end");
	},
	60_000,
);
