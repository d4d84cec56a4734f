/**
 * Watches the catalogue's file: written in place, replaced by a rename, or switched by a symbolic link as mounted
 * configuration is. Directory events are only hints. A slow poll also checks the file's identity, because network and
 * overlay mounts lose events.
 */
import { type FSWatcher, watch } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createStates } from "../base/states.ts";
import type { ReloadResult } from "./catalog.ts";

export interface CatalogWatch {
	stop(): void;
}

export interface CatalogWatchOptions {
	/** Absolute. */
	path: string;
	/** The file must be unchanged for this long before it is read: a half-written file could be valid and shorter. */
	settleMs?: number;
	pollMs?: number;
	/** False if the file system's events are unusable; only the poll then works. */
	events?: boolean;
}

type WatchState = "idle" | "looking" | "stopped";

const TRANSITIONS: Readonly<Record<WatchState, readonly WatchState[]>> = {
	idle: ["looking", "stopped"],
	looking: ["idle", "stopped"],
	stopped: [],
};
const SETTLE_MS = 200;
const POLL_MS = 3_000;

/** Calls `reload` after each change and when `isStale`, and again at each poll while it fails for a passing reason. */
export function watchCatalog(
	deps: { clock: Clock; log: Log; reload: () => Promise<ReloadResult>; isStale?: () => boolean },
	options: CatalogWatchOptions,
): CatalogWatch {
	const { clock, log } = deps;
	const settleMs = options.settleMs ?? SETTLE_MS;
	const pollMs = options.pollMs ?? POLL_MS;
	const states = createStates(TRANSITIONS, "idle");
	/** Identity of the file at the last successful or finally failed reload. */
	let loaded: string | undefined;
	/** Identity at the last look. Two equal looks `settleMs` apart mean that the file is not being written. */
	let seen: string | undefined;
	/** Why the last look failed although the file may exist. */
	let hindered: string | undefined;
	let next: { dueMs: number; cancel: () => void } | undefined;
	let watcher: FSWatcher | undefined;

	/** The earlier time wins: endless hints must not postpone the look. */
	function lookIn(delayMs: number): void {
		const dueMs = clock.monotonicMs() + delayMs;
		if (states.is("stopped") || (next !== undefined && next.dueMs <= dueMs)) return;
		next?.cancel();
		const cancel = clock.after(delayMs, () => {
			next = undefined;
			look().catch((error) => log.error("looking at the catalogue's file failed", { error }));
		});
		next = { dueMs, cancel };
	}

	async function look(): Promise<void> {
		if (states.is("stopped")) return;
		if (states.is("looking")) return lookIn(settleMs);
		states.enter("looking");
		let nextMs = pollMs;
		try {
			const { identity, hindrance } = await lookAt(options.path);
			if (hindrance !== undefined && hindrance !== hindered)
				log.warn("the catalogue's file cannot be looked at; it is tried again", {
					path: options.path,
					reason: hindrance,
				});
			hindered = hindrance;
			if (identity === undefined && hindrance === undefined && seen !== undefined)
				log.warn("the catalogue's file is gone", { path: options.path });
			const settled = identity === seen;
			if (hindrance === undefined) seen = identity;
			if (identity !== undefined && identity !== loaded) {
				if (!settled) nextMs = settleMs;
				else if (await reload()) loaded = identity;
			}
			// The file is unchanged and a model's retirement day has come. A missing file is read once it is back.
			else if (deps.isStale?.() && !(await reload())) loaded = undefined;
			openWatcher();
		} finally {
			if (states.is("looking")) states.enter("idle");
			lookIn(nextMs);
		}
	}

	/** True if retrying with the same file cannot help. */
	async function reload(): Promise<boolean> {
		const result = await deps.reload();
		return result.ok || result.lasting;
	}

	function openWatcher(): void {
		if (watcher !== undefined || states.is("stopped") || options.events === false) return;
		try {
			const opened = watch(dirname(options.path), { persistent: false }, () => lookIn(settleMs));
			opened.on("error", (error) => {
				log.debug("watching the catalogue's directory failed; polling goes on", { error });
				opened.close();
				if (watcher === opened) watcher = undefined;
			});
			watcher = opened;
		} catch (error) {
			log.debug("the catalogue's directory cannot be watched; polling goes on", { error });
		}
	}

	openWatcher();
	// The state at the start counts as a change: the file may have changed since the boot's own load.
	lookIn(0);

	return {
		stop() {
			if (!states.is("stopped")) states.enter("stopped");
			next?.cancel();
			watcher?.close();
		},
	};
}

/**
 * The identity changes with any write, rename or switched link; undefined if there is no file. `hindrance` is the
 * system's error code when the file cannot be examined (no permission, no free descriptor).
 */
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
