import { existsSync, readFileSync } from "node:fs";
import type { Clock } from "../base/clock.ts";
import { createSilences } from "../cluster/fence.ts";

/** A text stored next to a journal, for as long as the journal exists. */
export interface JournalNote {
	/** Undefined if there is none, or it cannot be read. */
	read(): string | undefined;
	/** A failed write is ignored. */
	write(text: string): void;
}

/** Linux's id of the present boot, and the time since it by a clock that all processes share. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";
const UPTIME = "/proc/uptime";

/**
 * How long a beat has been unchanged, including the observations of earlier processes. Like `createSilences`, but
 * observations of one process count for the next on this machine. If each process crashes sooner than a lease expires,
 * none would otherwise complete the wait.
 */
export function createPersistedLiveness(clock: Clock, note: JournalNote | undefined) {
	const own = createSilences(clock);
	const boot = note === undefined || !existsSync(BOOT_ID) ? undefined : readFileSync(BOOT_ID, "utf8").trim();
	const seen = note === undefined || boot === undefined ? new Map() : readSeen(note.read(), boot);

	let isKept = true;

	function see(what: string, beat: number, sinceMs: number): void {
		seen.set(what, { beat, sinceMs });
		isKept = false;
	}

	return {
		ofMs(what: string, beat: number) {
			const nowMs = uptimeMs();
			const known = seen.get(what);
			if (known?.beat !== beat || !(known.sinceMs <= nowMs)) see(what, beat, nowMs);
			const keptMs = nowMs - (seen.get(what)?.sinceMs ?? nowMs);
			return Math.max(keptMs, own.ofMs(what, beat));
		},
		/** An epoch that was silent for `silentMs` was fenced off, which changes its beat. */
		endedWith: (what: string, beat: number, silentMs: number) => see(what, beat, uptimeMs() - silentMs),
		/**
		 * Saves the state of `those` for the next process, and forgets the rest. All at once: saving each alone would
		 * rewrite the note every time, half a second with a thousand epochs.
		 */
		keep(those: ReadonlySet<string>) {
			for (const what of seen.keys()) if (!those.has(what)) seen.delete(what);
			own.keep(those);
			if (isKept) return;
			isKept = true;
			if (boot !== undefined) note?.write(`${JSON.stringify({ boot, seen: [...seen] })}\n`);
		},
	};
}

type Seen = Map<string, { readonly beat: number; readonly sinceMs: number }>;

function readSeen(text: string | undefined, boot: string): Seen {
	// A note that was cut off may say something else than was written.
	if (!text?.endsWith("\n")) return new Map();
	try {
		const kept = JSON.parse(text) as { boot: string; seen: [] };
		return new Map(kept.boot === boot ? kept.seen : []);
	} catch {
		return new Map();
	}
}

/** This clock continues while a machine is suspended, and so do the leases that are waited for. */
const uptimeMs = () => (existsSync(UPTIME) ? Number(readFileSync(UPTIME, "utf8").split(" ")[0]) * 1_000 : 0);
