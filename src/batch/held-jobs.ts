import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { tryFileLock } from "../base/file-lock.ts";
import type { Log } from "../base/log.ts";

/** A job of the queue and its attempt, as pg-boss counts them. */
export interface JobAttempt {
	readonly id: string;
	readonly retryCount: number;
}

export type HeldJobs = ReturnType<typeof createHeldJobs>;

const OWNER_ONLY_FOLDER = 0o700;
const NAME = /^([0-9a-f-]{36})\.(\d+)$/;

/**
 * Jobs that processes of this machine hold. A restarted process gives back the jobs of a killed one at once, before
 * their heartbeats time out. Each job is an empty file with a lock, which the kernel frees when its holder dies and
 * keeps while it is paused.
 */
export function createHeldJobs({ log }: { log: Log }, { folder }: { folder: string }) {
	return {
		/** Marks a job as held; the returned function ends that. */
		hold({ id, retryCount }: JobAttempt): () => void {
			const path = join(folder, `${id}.${retryCount}`);
			try {
				mkdirSync(folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
				const lock = tryFileLock(path);
				return () => {
					rmSync(path, { force: true });
					lock?.release();
				};
			} catch (error) {
				log.info("a job could not be locked; after a crash another instance takes it when its heartbeats stop", {
					error,
				});
				return () => {};
			}
		},
		/** Jobs whose process died; each is returned once. */
		orphans(): JobAttempt[] {
			if (!existsSync(folder)) return [];
			return readdirSync(folder).flatMap((name) => {
				const [, id, retryCount] = NAME.exec(name) ?? [];
				if (id === undefined) return [];
				const path = join(folder, name);
				const lock = tryFileLock(path);
				if (lock === undefined) return [];
				rmSync(path, { force: true });
				lock.release();
				return [{ id, retryCount: Number(retryCount) }];
			});
		},
	};
}
