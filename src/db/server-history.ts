import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../base/log.ts";
import { WrongServer } from "./outage.ts";

export type ServerHistory = ReturnType<typeof createServerHistory>;

/** File with the highest timelines seen. An operator deletes it to accept a server with a lower timeline. */
const TIMELINES_NAME = "database-timelines.json";

/** Highest timeline seen, by system identifier. */
type Timelines = Readonly<Record<string, number>>;

interface Place {
	/** System identifier of the database cluster; `?`: unknown. */
	readonly system: string;
	/** Timeline; `-`: the server is a standby; `@` and a time: its start, because its timeline cannot be read. */
	readonly timeline: string;
	/** Position to which the write-ahead log was flushed, in bytes. */
	readonly position: bigint;
}

/**
 * Remembers the database servers that answered this process. A server with another identifier or timeline, or a lower
 * position than before, has another history and may lack commits. A server with a lower timeline is refused. `dataDir`
 * keeps the highest timelines for all processes; without it they are in memory.
 */
export function createServerHistory({ log }: { log: Log }, dataDir?: string) {
	const path = dataDir === undefined ? undefined : join(dataDir, TIMELINES_NAME);
	const listeners = new Set<() => void>();
	let present: Place | undefined;
	let setbacks = 0;
	let moves = 0;
	let inMemory: Timelines = {};
	let roundTripMs: number | undefined;

	function timelines(): Timelines {
		if (path === undefined) return inMemory;
		try {
			return JSON.parse(readFileSync(path, "utf8"));
		} catch {
			return inMemory;
		}
	}

	function refuseSuperseded({ system, timeline }: Place): void {
		if (timeline === "-") throw new WrongServer("the database's address leads to a standby, which only reads");
		const number = Number.parseInt(timeline, 16);
		if (system === "?" || Number.isNaN(number)) return;
		const known = timelines();
		const highest = known[system] ?? 0;
		if (number < highest)
			throw new WrongServer(
				`the database's address leads to a superseded server: its timeline is ${number}, and ${highest} has been seen`,
			);
		if (number === highest) return;
		inMemory = { ...known, [system]: number };
		if (path !== undefined) save(path);
	}

	function save(to: string): void {
		try {
			writeFileSync(`${to}.new`, JSON.stringify(inMemory), { mode: 0o600 });
			renameSync(`${to}.new`, to);
		} catch (error) {
			// A missing folder is no error, because commands may run without DATA_DIR.
			if ((error as NodeJS.ErrnoException).code !== "ENOENT")
				log.warn("the database's timeline could not be stored", { path: to, error });
		}
	}

	function moveTo(place: Place, why: string): void {
		log.warn("the database has another history", { why, server: nameOf(place), before: present && nameOf(present) });
		present = place;
		moves += 1;
		for (const listener of listeners) listener();
	}

	function observe(place: Place, floor: Place | undefined): void {
		refuseSuperseded(place);
		if (present === undefined) present = place;
		else if (nameOf(place) !== nameOf(present)) moveTo(place, "another server answers");
		else if (floor !== undefined && place.position < floor.position) {
			setbacks += 1;
			moveTo(place, "the server went back in time");
		} else if (place.position > present.position) present = place;
	}

	const history = {
		/** Label of the current history. It changes when a server with another history has answered. */
		label: () => (present === undefined ? "" : setbacks === 0 ? nameOf(present) : `${nameOf(present)} -${setbacks}`),
		setbacks: () => setbacks,
		/**
		 * Call it before a statement that returns `server_place()`, and call its result with that value. Answers may arrive
		 * out of order, so each is compared with what was known when it was requested. False if the history changed in
		 * between, because the previous server may have answered. Throws WrongServer.
		 */
		look() {
			const before = { moves, present };
			return (answer: string): boolean => {
				if (before.moves !== moves) return false;
				observe(placeIn(answer), before.present);
				return true;
			};
		},
		/** Checks which server a new connection has reached. Throws WrongServer. */
		async check(query: (text: string) => PromiseLike<readonly { readonly place?: unknown }[]>): Promise<void> {
			for (;;) {
				const look = history.look();
				const sentMs = performance.now();
				const [row] = await query("select server_place() as place");
				const tookMs = performance.now() - sentMs;
				// The estimate at most doubles per connection, because a busy server also answers late.
				roundTripMs = Math.min(tookMs, 2 * (roundTripMs ?? tookMs));
				if (look(String(row?.place))) return;
			}
		},
		/** Milliseconds of a round trip to the server, measured on each new connection; undefined before the first. */
		roundTripMs: () => roundTripMs,
		onMove: (listener: () => void) => void listeners.add(listener),
	};
	return history;
}

const nameOf = ({ system, timeline }: Place) => `${system}/${timeline}`;

function placeIn(answer: string): Place {
	const [, system = "?", timeline = "@", position = "0"] = /^(.*)\/(\S+) (\d+)$/.exec(answer) ?? [];
	return { system, timeline, position: BigInt(position) };
}
