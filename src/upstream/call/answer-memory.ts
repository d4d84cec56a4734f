import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { CounterMap } from "../../base/counter-map.ts";
import { LinkedQueue, type QueueNode } from "../../base/linked-queue.ts";
import { nextTurn } from "../../base/next-turn.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import { UpstreamFailure } from "./failure.ts";

/**
 * Long answers in one piece, from their first bytes until clients have read them. What finds no room is not read further: its server
 * keeps it, and is kept waiting by it. Else many at once would be in memory before the first of them could count as unread.
 */
export interface AnswerMemory {
	/** One that is about to come. */
	read(accountId: string): AnswerRead;
	/** Of those that wait for their clients; negative once one is gone. */
	addUnread(accountId: string, bytes: number): void;
	unreadOf(accountId: string): number;
	unread(): number;
}

/** One answer, in however many parts. */
export interface AnswerRead {
	/**
	 * So much more of it came. Gives a promise where that is to wait: it rejects with the signal's reason, or with an UpstreamFailure `crowded`
	 * once it has waited too long. Throws that at once for an answer that would never find room.
	 */
	take(bytes: number, signal: AbortSignal, isPatient: boolean): undefined | Promise<void>;
	/** Once it was read, or given up. */
	release(): void;
}

/** For the next room, and not longer than the request may take: a client that reads nothing is cut off meanwhile. A line of a batch waits as it must. */
const WAIT_MS = 10_000;
/** A process that reads its share takes several times as much: an answer is pieces, bytes, values and text, which are collected late. */
const READ_SHARE = 1 / 8;
/** Of one answer alone. */
const ANSWER_SHARE = 1 / 2;

/** Who has his share unread asks for nothing more. What he had asked for before may pass it by as much again, and leaves others room. */
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

export function createAnswerMemory(
	{ clock, collect }: { clock: Clock; collect?: () => void },
	{ limits }: { limits(): Pick<ServiceLimits, "answerMemoryBytesMax" | "answerMemoryAccountBytesMax"> },
): AnswerMemory {
	/** By account. */
	const unread = new CounterMap();
	let allUnread = 0;
	let allRead = 0;
	/** What was let go since the heap was last collected. */
	let leftBytes = 0;
	/** When something was let go last. */
	let roomMs = 0;
	/** In the order in which they began. */
	const readings = new LinkedQueue<Reading>();
	const waiting = new LinkedQueue<Waiting>();

	function isRoom({ accountId, node }: Reading, bytes: number): boolean {
		const { answerMemoryBytesMax, answerMemoryAccountBytesMax } = limits();
		if (unread.of(accountId) > answerMemoryAccountBytesMax * ACCOUNT_SHARES) return false;
		if (allUnread > 0 && allUnread + allRead + bytes > answerMemoryBytesMax) return false;
		// The first one waits for no other that is read, or all might for each other.
		return node?.before === undefined || allRead + bytes <= answerMemoryBytesMax * READ_SHARE;
	}

	function add(reading: Reading, bytes: number): void {
		reading.bytes += bytes;
		allRead += bytes;
		assert(allRead >= 0, "what was read gives back what it took");
	}

	/** The collector sees no need for itself before the heap has grown by far more than a small container has. */
	function left(bytes: number): void {
		leftBytes += bytes;
		if (leftBytes < limits().answerMemoryBytesMax * READ_SHARE) return;
		leftBytes = 0;
		// What has just been let go is still in somebody's hands.
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
				// While others get on there will be room for it, too.
				if (roomMs > sinceMs) return waitOn(roomMs);
				end();
				answer.reject(crowded("no room for a long answer came"));
			});
		};
		if (!isPatient) waitOn(clock.monotonicMs());
		if (signal.aborted) giveUp();
		else signal.addEventListener("abort", giveUp, { once: true });
		return answer.promise;
	}

	return {
		read(accountId) {
			const reading: Reading = { accountId, bytes: 0, node: undefined };
			return {
				take(bytes, signal, isPatient) {
					if (reading.bytes + bytes > limits().answerMemoryBytesMax * ANSWER_SHARE)
						throw crowded("an answer that is larger than the memory for answers bears");
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
		addUnread(accountId, bytes) {
			unread.add(accountId, bytes);
			allUnread += bytes;
			assert(allUnread >= 0, "an answer gives back what it took");
			if (bytes >= 0) return;
			left(-bytes);
			look();
		},
		unreadOf: (accountId) => unread.of(accountId),
		unread: () => allUnread,
	};
}

function crowded(detail: string): UpstreamFailure {
	return new UpstreamFailure("crowded", { private: detail });
}
