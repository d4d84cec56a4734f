import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { CounterMap } from "../../base/counter-map.ts";
import { LinkedQueue, type QueueNode } from "../../base/linked-queue.ts";
import { nextTurn } from "../../base/time-slice.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import { UpstreamFailure } from "./failure.ts";

export type AnswerMemory = ReturnType<typeof createAnswerMemory>;

export interface AnswerRead {
	/** Reserves `bytes` more, waiting if necessary. UpstreamFailure `crowded` after too long, or if they cannot fit. */
	take(bytes: number, signal: AbortSignal, isPatient: boolean): undefined | Promise<void>;
	/** Call it when the answer was read or dropped. */
	release(): void;
}

/** Longest wait in which no memory becomes free; a client may read nothing for this long. Batch lines wait forever. */
const WAIT_MS = 10_000;
/** Share of the memory that answers being read may use: parsing takes several times their bytes, freed late. */
const READ_SHARE = 1 / 8;
const ANSWER_SHARE = 1 / 2;

/** An account with more unread bytes than this many equal shares may not read another answer from a server. */
const ACCOUNT_SHARES = 2;

interface Waiting {
	readonly reading: Reading;
	readonly bytes: number;
	go(): void;
}

interface Reading {
	readonly accountId: string;
	bytes: number;
	node: QueueNode<Reading> | undefined;
}

/**
 * Limits the memory of long unstreamed answers, from their first byte until the client has read them. If the memory is
 * full, the gateway stops reading an answer, so that its model server waits (backpressure).
 */
export function createAnswerMemory(
	{ clock, collect }: { clock: Clock; collect?: () => void },
	{ limits }: { limits(): Pick<ServiceLimits, "answerMemoryBytesMax" | "answerMemoryAccountBytesMax"> },
) {
	const unread = new CounterMap();
	let allUnread = 0;
	let allRead = 0;
	/** Bytes released since `collect` was last called. */
	let leftBytes = 0;
	/** Monotonic time of the last release, in milliseconds. */
	let roomMs = 0;
	const readings = new LinkedQueue<Reading>();
	const waiting = new LinkedQueue<Waiting>();

	function isRoom({ accountId, node }: Reading, bytes: number): boolean {
		const { answerMemoryBytesMax, answerMemoryAccountBytesMax } = limits();
		if (unread.of(accountId) > answerMemoryAccountBytesMax * ACCOUNT_SHARES) return false;
		if (allUnread > 0 && allUnread + allRead + bytes > answerMemoryBytesMax) return false;
		// The oldest answer never waits for other answers to be read: otherwise all could wait for each other.
		return node?.before === undefined || allRead + bytes <= answerMemoryBytesMax * READ_SHARE;
	}

	function add(reading: Reading, bytes: number): void {
		reading.bytes += bytes;
		allRead += bytes;
		assert(allRead >= 0, "a reading releases at most what it took");
	}

	/** Collects garbage after enough releases, because in a small container the runtime collects too late. */
	function left(bytes: number): void {
		leftBytes += bytes;
		if (leftBytes < limits().answerMemoryBytesMax * READ_SHARE) return;
		leftBytes = 0;
		// In the next event-loop turn, because now the stack still refers to the released bytes.
		if (collect !== undefined) void nextTurn().then(collect);
	}

	function look(): void {
		roomMs = clock.monotonicMs();
		for (const one of waiting) if (isRoom(one.reading, one.bytes)) one.go();
	}

	function wait(reading: Reading, bytes: number, signal: AbortSignal, isPatient: boolean): Promise<void> {
		const answer = Promise.withResolvers<void>();
		const end = () => {
			waiting.delete(node);
			cancel?.();
			signal.removeEventListener("abort", giveUp);
		};
		const giveUp = () => {
			end();
			answer.reject(signal.reason);
		};
		const node = waiting.add({
			reading,
			bytes,
			go() {
				end();
				add(reading, bytes);
				answer.resolve();
			},
		});
		let cancel: (() => void) | undefined;
		const waitOn = (sinceMs: number) => {
			cancel = clock.after(sinceMs + WAIT_MS - clock.monotonicMs(), () => {
				// Memory was released since the wait began, so more will become free: waits again.
				if (roomMs > sinceMs) return waitOn(roomMs);
				end();
				answer.reject(crowded("no memory became free for a long answer"));
			});
		};
		if (!isPatient) waitOn(clock.monotonicMs());
		if (signal.aborted) giveUp();
		else signal.addEventListener("abort", giveUp, { once: true });
		return answer.promise;
	}

	return {
		read(accountId: string): AnswerRead {
			const reading: Reading = { accountId, bytes: 0, node: undefined };
			return {
				take(bytes, signal, isPatient) {
					if (reading.bytes + bytes > limits().answerMemoryBytesMax * ANSWER_SHARE)
						throw crowded("the answer exceeds the memory for answers");
					reading.node ??= readings.add(reading);
					if (!isRoom(reading, bytes)) return wait(reading, bytes, signal, isPatient);
					add(reading, bytes);
					return undefined;
				},
				release() {
					if (reading.node === undefined) return;
					readings.delete(reading.node);
					reading.node = undefined;
					left(reading.bytes);
					add(reading, -reading.bytes);
					look();
				},
			};
		},
		/** Adds answer bytes that a client has not read yet; negative once the client has read or dropped them. */
		addUnread(accountId: string, bytes: number) {
			unread.add(accountId, bytes);
			allUnread += bytes;
			assert(allUnread >= 0, "unread bytes are not negative");
			if (bytes >= 0) return;
			left(-bytes);
			look();
		},
		unreadOf: (accountId: string): number => unread.of(accountId),
		unread: (): number => allUnread,
	};
}

function crowded(detail: string): UpstreamFailure {
	return new UpstreamFailure("crowded", { private: detail });
}
