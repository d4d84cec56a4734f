import { Fault } from "../../base/fault.ts";
import { passedBody } from "../../base/passed-body.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { AnswerMemory } from "../../upstream/call/answer-memory.ts";
import { type Connection, IDLE_TIMEOUT_S, trySetIdleTimeout, UNREAD_TIMEOUT_S } from "../connection.ts";

/**
 * Long answers in one piece that clients have not read to their end, by account. Nothing that was paid for is taken back: who leaves too
 * much unread is asked to read it first.
 */
export interface UnreadAnswers {
	/** Faults: rate_limit_exceeded for the account's own limit, overloaded beyond everybody's for who has any of it. */
	check(accountId: string): void;
	/** The body of an answer, counted until it is read, let go, or its client has left. `bytes`: 0 if nobody counted them. */
	passed(body: LongBody, bytes: number, reader: AnswerReader): LongBody;
	/** The same of one that is here as a whole; as it is if it is short. */
	passedBytes(body: Uint8Array, reader: AnswerReader): Uint8Array<ArrayBuffer> | LongBody;
	bytes(): number;
}

export interface AnswerReader {
	readonly accountId: string;
	readonly connection: Connection;
}

export type LongBody = ReadableStream<Uint8Array> | ReadableStream<string>;

/** What an answer counts as that came as events: those are 4 MB at most, and hardly ever long. */
const UNCOUNTED_BYTES = 512 * 1024;
const SHORT_BYTES = 128 * 1024;

export function createUnreadAnswers(deps: {
	/** Where what is on its way from a server looks for room. */
	answers: AnswerMemory;
	limits(): Pick<ServiceLimits, "answerMemoryBytesMax" | "answerMemoryAccountBytesMax">;
}): UnreadAnswers {
	const { answers } = deps;

	function passed(body: LongBody, counted: number, { accountId, connection }: AnswerReader): LongBody {
		const { signal } = connection.request;
		const bytes = counted === 0 ? UNCOUNTED_BYTES : counted;
		let isHeld = true;
		const release = () => {
			if (!isHeld) return;
			isHeld = false;
			signal.removeEventListener("abort", release);
			trySetIdleTimeout(connection, IDLE_TIMEOUT_S);
			answers.addUnread(accountId, -bytes);
		};
		answers.addUnread(accountId, bytes);
		trySetIdleTimeout(connection, UNREAD_TIMEOUT_S);
		// A client that left before its answer is first read leaves no other trace.
		if (signal.aborted) release();
		else signal.addEventListener("abort", release);
		return passedBody(body as ReadableStream<Uint8Array>, release);
	}

	return {
		check(accountId) {
			const all = answers.unread();
			if (all === 0) return;
			const own = answers.unreadOf(accountId);
			const { answerMemoryBytesMax, answerMemoryAccountBytesMax } = deps.limits();
			if (own > answerMemoryAccountBytesMax) {
				throw new Fault("rate_limit_exceeded", "Answers of this account wait to be read. Read them first.", {
					retryAfterS: 1,
				});
			}
			// Who keeps nobody from anything is kept from nothing.
			if (all > answerMemoryBytesMax && own > 0)
				throw new Fault("overloaded", "Too many answers wait to be read. Try again shortly.", { retryAfterS: 1 });
		},
		passed,
		passedBytes(body, reader) {
			if (body.length <= SHORT_BYTES) return body as Uint8Array<ArrayBuffer>;
			return passed(piecesOf(body), body.length, reader);
		},
		bytes: () => answers.unread(),
	};
}

function piecesOf(body: Uint8Array): ReadableStream<Uint8Array> {
	let at = 0;
	return new ReadableStream<Uint8Array>({
		pull(controller) {
			const piece = body.subarray(at, at + SHORT_BYTES);
			at += piece.length;
			if (piece.length === 0) controller.close();
			else controller.enqueue(piece);
		},
	});
}
