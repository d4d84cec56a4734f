import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { tryFileLock } from "../base/file-lock.ts";
import type { Log } from "../base/log.ts";

/** A job of the queue and which of its attempts, as pg-boss counts them. */
export interface JobAttempt {
	/** UUID. */
	readonly id: string;
	readonly retryCount: number;
}

/**
 * The jobs that processes of this machine are at, so that what a killed one was at is given to others at its next start
 * here and not when its signs of life have been missed for long. Empty files with a lock each, which the kernel frees when
 * its holder dies and keeps while it is paused.
 */
export interface HeldJobs {
	/** Gives what says that the process is at it no more. */
	hold(job: JobAttempt): () => void;
	/** Whose process is gone; each is told once. */
	orphans(): JobAttempt[];
}

const OWNER_ONLY_FOLDER = 0o700;
const NAME = /^([0-9a-f-]{36})\.(\d+)$/;

export function createHeldJobs(deps: { log: Log }, options: { folder: string }): HeldJobs {
	const { folder } = options;
	return {
		hold({ id, retryCount }) {
			const path = join(folder, `${id}.${retryCount}`);
			try {
				mkdirSync(folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
				const lock = tryFileLock(path);
				return () => {
					rmSync(path, { force: true });
					lock?.release();
				};
			} catch (error) {
				deps.log.info("a job could not be marked as this process's; a crash is noticed by its silence", { error });
				return () => {};
			}
		},
		orphans() {
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
