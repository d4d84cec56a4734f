import { LinkedQueue } from "../../base/linked-queue.ts";
import { SlotPool } from "../../base/slot-pool.ts";
import type { Replica } from "./replica.ts";
import type { PlaceWaiter } from "./ticket.ts";

/** A caller that waits for a place for batch lines. */
export interface PlaceWatcher {
	look(): void;
	refuse(fault: Error): void;
}

/** Share of a replica's places that batch lines leave free, if the replica has more than one place. */
const RESERVE_SHARE = 1 / 8;

/** Batch lines at a model's replicas. They use only spare places, and yield them when other requests wait. */
export function createPatientCalls() {
	const calls = new SlotPool<{ readonly replica: Replica; ask: (() => void) | undefined }>();

	return {
		/** Chooses the replica with the most spare places. */
		choose(replicas: readonly Replica[], exclude: ReadonlySet<Replica>, accountId: string): Replica | undefined {
			let most = 0;
			let best: Replica | undefined;
			for (const replica of replicas) {
				if (exclude.has(replica) || !replica.hasPlace(accountId)) continue;
				const room = roomAt(replica);
				if (room > most) {
					most = room;
					best = replica;
				}
			}
			return best;
		},
		/** True if a replica has a spare place, for any account. */
		hasRoom: (replicas: readonly Replica[]): boolean =>
			replicas.some((replica) => replica.takesCalls() && roomAt(replica) > 0),
		/** Number of places for batch lines, including those that batch lines occupy. */
		places(replicas: readonly Replica[]): number {
			let places = calls.size;
			for (const replica of replicas) if (replica.takesCalls()) places += Math.max(0, roomAt(replica));
			return places;
		},
		/** Number of batch lines at replicas that take calls. */
		running(): number {
			let lines = 0;
			for (const { replica } of calls) if (replica.takesCalls()) lines += 1;
			return lines;
		},
		/**
		 * Adds a call and returns the function that ends it. `ask` makes it yield its place; undefined: it keeps its place.
		 */
		begin(replica: Replica, ask: (() => void) | undefined): () => void {
			const call = { replica, ask: replica.dialect.stopsAtOnce ? ask : undefined };
			const slot = calls.take(call);
			return () => void calls.release(slot, call);
		},
		/** Asks one batch line at any of these replicas to yield its place; false if there is none. */
		askOne(replicas: readonly Replica[]): boolean {
			for (const call of calls) {
				if (call.ask === undefined || !replicas.includes(call.replica)) continue;
				const { ask } = call;
				call.ask = undefined;
				ask();
				return true;
			}
			return false;
		},
		/** Waiting batch lines in order. They are served after all other requests. */
		waiting: new LinkedQueue<PlaceWaiter>(),
		watching: new LinkedQueue<PlaceWatcher>(),
	};
}

function roomAt(replica: Replica): number {
	const capacity = replica.capacity();
	const reserve = capacity === 1 ? 0 : Math.max(1, Math.floor(capacity * RESERVE_SHARE));
	return capacity - reserve - replica.inFlight();
}
