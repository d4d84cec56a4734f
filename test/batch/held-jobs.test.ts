import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../src/base/log.ts";
import { createHeldJobs, type JobAttempt } from "../../src/batch/held-jobs.ts";
import { temporaryFolder } from "../support/at-end.ts";

const job = (retryCount: number): JobAttempt => ({ id: crypto.randomUUID(), retryCount });

/** Holds a job in a process of its own, which is killed when it has it. */
async function killedHolder(folder: string, { id, retryCount }: JobAttempt): Promise<void> {
	const module = JSON.stringify(join(import.meta.dir, "../../src/batch/held-jobs.ts"));
	const script = `
		const { createHeldJobs } = await import(${module});
		createHeldJobs({ log: console }, { folder: process.argv[1] }).hold({ id: process.argv[2], retryCount: Number(process.argv[3]) });
		process.kill(process.pid, "SIGKILL");`;
	const child = Bun.spawn([process.execPath, "-e", script, folder, id, String(retryCount)], { stderr: "inherit" });
	await child.exited;
	expect(child.signalCode).toBe("SIGKILL");
}

test("returns the jobs of killed processes once, no others", async () => {
	const folder = join(temporaryFolder(), "jobs");
	const held = createHeldJobs({ log: silentLog }, { folder });
	expect(held.orphans()).toEqual([]);
	const [living, ended, killed, again] = [job(0), job(1), job(12), job(3)];
	held.hold(living);
	held.hold(ended)();
	await killedHolder(folder, killed);
	await killedHolder(folder, again);
	held.hold(again);
	expect(createHeldJobs({ log: silentLog }, { folder }).orphans()).toEqual([killed]);
	expect(held.orphans()).toEqual([]);
	expect(readdirSync(folder).sort()).toEqual([`${living.id}.0`, `${again.id}.3`].sort());
});

test("runs jobs if the folder is not writable", () => {
	const folder = join(temporaryFolder(), "jobs");
	writeFileSync(folder, "no folder");
	createHeldJobs({ log: silentLog }, { folder }).hold(job(0))();
	const other = join(temporaryFolder(), "jobs");
	mkdirSync(other);
	writeFileSync(join(other, "something else"), "");
	expect(createHeldJobs({ log: silentLog }, { folder: other }).orphans()).toEqual([]);
});
