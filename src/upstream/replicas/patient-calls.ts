import { LinkedQueue } from "../../base/linked-queue.ts";
import { SlotPool } from "../../base/slot-pool.ts";
import type { DialectName } from "../../catalog/model.ts";
import type { Replica } from "./replica.ts";
import type { PatientCall } from "./ticket.ts";
import type { Waiter } from "./waiting-lines.ts";

/** Lines of batches at the replicas of one model: they take what others leave, and give it back when others wait. */
export interface PatientCalls {
	/** A replica with a place that others leave. */
	choose(replicas: readonly Replica[], exclude: ReadonlySet<Replica>, accountId: string): Replica | undefined;
	/** Whether others leave a place at any of them, for whichever account. */
	hasRoom(replicas: readonly Replica[]): boolean;
	/** How many lines others leave places for, those that are under way counted. */
	places(replicas: readonly Replica[]): number;
	/** Counts a call in. `ask` makes it give its place up; undefined if it may not be asked. */
	begin(replica: Replica, ask: (() => void) | undefined): PatientCall;
	/** Asks one call at any of these replicas for its place; false if none can give it up. */
	askOne(replicas: readonly Replica[]): boolean;
	/** First in, first out, behind everybody else. */
	readonly waiting: LinkedQueue<Waiter>;
	/** Who wants to know when there is room. */
	readonly watching: LinkedQueue<Watcher>;
}

/** Waits for room. */
export interface Watcher {
	look(): void;
	refuse(fault: Error): void;
}

/** Of a replica's places these stay free for others, where there is more than one: a request need not wait for a line. */
const RESERVE_SHARE = 1 / 8;

/** Servers that stop generating as soon as the connection is closed: what they have done by then is all that is lost. */
const STOPS_AT_ONCE: ReadonlySet<DialectName> = new Set(["vllm", "sglang", "llama.cpp", "ollama"]);

export function createPatientCalls(): PatientCalls {
	const calls = new SlotPool<{ readonly replica: Replica; ask: (() => void) | undefined }>();

	return {
		choose(replicas, exclude, accountId) {
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
		hasRoom: (replicas) => replicas.some((replica) => replica.takesCalls() && roomAt(replica) > 0),
		places(replicas) {
			let places = calls.size;
			for (const replica of replicas) if (replica.takesCalls()) places += Math.max(0, roomAt(replica));
			return places;
		},
		begin(replica, ask) {
			const call = { replica, ask: STOPS_AT_ONCE.has(replica.spec().dialect) ? ask : undefined };
			const slot = calls.take(call);
			return { end: () => void calls.release(slot, call) };
		},
		askOne(replicas) {
			for (const call of calls) {
				if (call.ask === undefined || !replicas.includes(call.replica)) continue;
				const { ask } = call;
				call.ask = undefined;
				ask();
				return true;
			}
			return false;
		},
		waiting: new LinkedQueue(),
		watching: new LinkedQueue(),
	};
}

function roomAt(replica: Replica): number {
	const capacity = replica.capacity();
	const reserve = capacity === 1 ? 0 : Math.max(1, Math.floor(capacity * RESERVE_SHARE));
	return capacity - reserve - replica.inFlight();
}
