import { appendFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { isDatabaseDown } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import { type ControlEntry, readRecentControl } from "./control-log.ts";

const KEPT_MS = 3_600_000;
/** Maximum number of entries on disk, about 500 bytes each. Beyond it the oldest are dropped. */
const KEPT_MAX = 10_000;

/**
 * Keeps the control entries of the last hour on disk, because a failover may lose changes that were effective. An entry
 * is on disk before this instance reports it as applied.
 */
export function openKeptEntries(deps: { statements: Statements; clock: Clock; log: Log }, path: string) {
	const { statements, clock, log } = deps;
	const kept = new Map<string, ControlEntry>();
	let lines = 0;
	for (const entry of entriesIn(path)) kept.set(nameOf(entry), entry);

	/** Rewrites the whole file without entries that are too old or too many. */
	function rewrite(): void {
		const oldest = (clock.wallMs() - KEPT_MS) * 1_000;
		const excess = kept.size - KEPT_MAX;
		let place = 0;
		for (const [name, { atMicros }] of kept) if (place++ < excess || atMicros < oldest) kept.delete(name);
		lines = kept.size;
		write(() => {
			mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
			writeFileSync(`${path}.new`, [...kept.values()].map(lineOf).join(""), { mode: 0o600 });
			renameSync(`${path}.new`, path);
		});
	}

	function write(work: () => void): void {
		try {
			work();
		} catch (error) {
			log.warn("control entries could not be kept", { path, error });
		}
	}

	function add(entry: ControlEntry): void {
		if (kept.has(nameOf(entry))) return;
		kept.set(nameOf(entry), entry);
		lines += 1;
		if (lines > 2 * KEPT_MAX) rewrite();
		else write(() => appendFileSync(path, lineOf(entry), { mode: 0o600 }));
	}

	return {
		add,
		/**
		 * Compares the kept entries with the current server's log. Repeats missing changes that revoked a right, and
		 * records those that granted one. Call it before this instance admits requests on that server.
		 */
		async reconcile(): Promise<void> {
			const here = await readRecentControl(statements, KEPT_MAX);
			const known = new Set(here.map(nameOf));
			const oldest = (clock.wallMs() - KEPT_MS) * 1_000;
			const missing = [...kept.values()].filter((entry) => !known.has(nameOf(entry)) && entry.atMicros >= oldest);
			// The last entry about a subject contains its whole state, except that each booking is a separate change.
			const last = new Map(missing.map((entry) => [isBooking(entry) ? nameOf(entry) : entry.subject, entry]));
			for (const { seq, atMicros, kind, subject, payload } of last.values()) {
				const [row] = await statements<{ outcome: "redone" | "lost" | null }>`
					select act_lost(${seq}, ${atMicros}, ${kind}, ${subject}, ${JSON.stringify(payload)}::text::jsonb) as outcome`.catch(
					(error: unknown) => {
						if (isDatabaseDown(error)) throw error;
						log.error("the database lost an act: repeat it", { kind, subject, error });
						return [];
					},
				);
				if (row?.outcome === "redone") log.error("the database had lost an act, which was redone", { kind, subject });
				else if (row?.outcome === "lost") log.error("the database lost an act: repeat it", { kind, subject });
			}
			for (const entry of here) kept.set(nameOf(entry), entry);
			rewrite();
		},
	};
}

const isBooking = ({ kind }: ControlEntry) => kind === "budget";
const nameOf = ({ seq, atMicros }: Pick<ControlEntry, "seq" | "atMicros">) => `${seq} ${atMicros}`;
const lineOf = (entry: ControlEntry) => `${JSON.stringify(entry)}\n`;

function entriesIn(path: string): ControlEntry[] {
	try {
		return readFileSync(path, "utf8").split("\n").flatMap(entryIn);
	} catch {
		return [];
	}
}

/** Parses a line; empty if a crash cut the line off. */
function entryIn(line: string): ControlEntry[] {
	try {
		return [JSON.parse(line) as ControlEntry];
	} catch {
		return [];
	}
}
