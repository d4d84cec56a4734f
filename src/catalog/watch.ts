/**
 * Polls the catalogue's file for changes: written in place, renamed, or switched by a symbolic link. File-system events
 * are not used, because network and overlay mounts lose them.
 */
import { realpath, stat } from "node:fs/promises";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ReloadResult } from "./catalog.ts";

const POLL_MS = 1_000;

/** Calls `reload` after each change and when `isStale`. After a temporary failure repeats the call at each poll. */
export function watchCatalog(
	deps: { clock: Clock; log: Log; reload: () => Promise<ReloadResult>; isStale?: () => boolean },
	/** `path` is absolute. */
	{ path, pollMs = POLL_MS }: { path: string; pollMs?: number },
) {
	const { clock, log } = deps;
	/** Identity of the file at the last reload that succeeded, or that failed for a reason in the file itself. */
	let loaded: string | undefined;
	/** Identity at the last poll. The file is loaded once two polls agree, so that no half-written file is loaded. */
	let seen: string | undefined;
	/** Error code of the last poll, if the file exists but could not be read. */
	let hindered: string | undefined;
	let isStopped = false;
	let cancel = () => {};

	async function poll(): Promise<void> {
		const { identity, hindrance } = await lookAt(path);
		if (hindrance !== undefined && hindrance !== hindered)
			log.warn("the catalogue file cannot be read; retrying", { path, reason: hindrance });
		hindered = hindrance;
		if (hindrance !== undefined) return;
		if (identity === undefined && seen !== undefined) log.warn("the catalogue file is missing", { path });
		const isSettled = identity === seen;
		seen = identity;
		if (identity !== undefined && identity !== loaded) {
			if (isSettled && (await reload())) loaded = identity;
		}
		// The file is unchanged, but the retirement day of a model has begun.
		else if (identity !== undefined && deps.isStale?.()) await reload();
	}

	/** Reloads. Returns true if repeating it with the same file cannot help. */
	async function reload(): Promise<boolean> {
		if (isStopped) return true;
		const result = await deps.reload();
		return result.ok || result.lasting;
	}

	function pollIn(delayMs: number): void {
		cancel = clock.after(delayMs, async () => {
			await poll().catch((error) => log.error("checking the catalogue file failed", { error }));
			if (!isStopped) pollIn(pollMs);
		});
	}
	// The first poll is immediate, because the file may have changed since the process loaded it at its start.
	pollIn(0);

	return {
		stop() {
			isStopped = true;
			cancel();
		},
	};
}

/** Identity of the file, which any write, rename or switched link changes; or `hindrance`, such as EACCES. */
async function lookAt(path: string): Promise<{ readonly identity?: string; readonly hindrance?: string }> {
	try {
		const target = await realpath(path);
		const { ino, mtimeMs, ctimeMs, size } = await stat(target);
		return { identity: [target, ino, mtimeMs, ctimeMs, size].join("|") };
	} catch (error) {
		const code = String((error as NodeJS.ErrnoException).code);
		return code === "ENOENT" || code === "ENOTDIR" ? {} : { hindrance: code };
	}
}
