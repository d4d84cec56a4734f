import { existsSync, readFileSync } from "node:fs";
import type { Clock } from "../base/clock.ts";
import { createSilences } from "../cluster/fence.ts";

/** A text that is kept beside a journal, for as long as that is there. */
export interface JournalNote {
	/** Undefined if there is none, or it cannot be read. */
	read(): string | undefined;
	/** What cannot be written is not kept. */
	write(text: string): void;
}

/** How long something has been seen unchanged, also by processes before this one. */
export interface PersistedLiveness {
	ofMs(what: string, beat: number): number;
	/** Whoever had been silent for so long was fenced off, which is a beat of its own. */
	endedWith(what: string, beat: number, silentMs: number): void;
	/**
	 * Leaves what is known of these to the next process, and forgets all else. All at once: of each alone the note would be
	 * written anew, which with a thousand epochs is half a second.
	 */
	keep(those: ReadonlySet<string>): void;
}

/** Linux' own names for which start of the machine this is, and for the time since, by a clock that all processes have. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";
const UPTIME = "/proc/uptime";

/**
 * As `createSilences`, and what one process has seen counts for the next one on this machine: where each of them crashes sooner than
 * a lease is over, all would wait anew, and none to the end.
 */
export function createPersistedLiveness(clock: Clock, note: JournalNote | undefined): PersistedLiveness {
	const own = createSilences(clock);
	const boot = note === undefined || !existsSync(BOOT_ID) ? undefined : readFileSync(BOOT_ID, "utf8").trim();
	const seen = note === undefined || boot === undefined ? new Map() : readSeen(note.read(), boot);

	let isKept = true;

	function see(what: string, beat: number, sinceMs: number): void {
		seen.set(what, { beat, sinceMs });
		isKept = false;
	}

	return {
		ofMs(what, beat) {
			const nowMs = uptimeMs();
			const known = seen.get(what);
			if (known?.beat !== beat || !(known.sinceMs <= nowMs)) see(what, beat, nowMs);
			const keptMs = nowMs - (seen.get(what)?.sinceMs ?? nowMs);
			return Math.max(keptMs, own.ofMs(what, beat));
		},
		endedWith: (what, beat, silentMs) => see(what, beat, uptimeMs() - silentMs),
		keep(those) {
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
	// One that was cut off may say something else than was written.
	if (!text?.endsWith("\n")) return new Map();
	try {
		const kept = JSON.parse(text) as { boot: string; seen: [] };
		return new Map(kept.boot === boot ? kept.seen : []);
	} catch {
		return new Map();
	}
}

/** Goes on while a machine is suspended, and so do those that are waited for. */
const uptimeMs = () => (existsSync(UPTIME) ? Number(readFileSync(UPTIME, "utf8").split(" ")[0]) * 1_000 : 0);
