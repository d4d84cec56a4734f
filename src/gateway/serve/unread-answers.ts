import { Fault } from "../../base/fault.ts";
import { forwardBody } from "../../base/passed-body.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { AnswerMemory } from "../../upstream/call/answer-memory.ts";
import { type Connection, IDLE_TIMEOUT_S, trySetIdleTimeout, UNREAD_TIMEOUT_S } from "../connection.ts";

export type UnreadAnswers = ReturnType<typeof createUnreadAnswers>;

export interface AnswerReader {
	readonly accountId: string;
	readonly connection: Connection;
}

export type LongBody = ReadableStream<Uint8Array> | ReadableStream<string>;

/** Assumed size of an answer that the server sent as events. It has at most 4 MB and is usually short. */
const UNCOUNTED_BYTES = 512 * 1024;
const SHORT_BYTES = 128 * 1024;

/**
 * Counts long answers that clients have not read completely. A paid answer is never dropped; instead, its account's new
 * requests are refused until it is read.
 */
export function createUnreadAnswers(deps: {
	/** Memory limit shared with answers that are still arriving from a model server. */
	answers: AnswerMemory;
	limits(): Pick<ServiceLimits, "answerMemoryBytesMax" | "answerMemoryAccountBytesMax">;
}) {
	const { answers } = deps;

	/** Counts a body until the client has read or cancelled it, or disconnects. `bytes`: 0 if unknown. */
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
		// A disconnect before the first read causes no event of the stream, so the request's signal is needed.
		if (signal.aborted) release();
		else signal.addEventListener("abort", release);
		return forwardBody(body as ReadableStream<Uint8Array>, release);
	}

	/** Whose limit this account's unread answers exceed. */
	function excess(accountId: string): "account" | "all" | undefined {
		const all = answers.unread();
		if (all === 0) return undefined;
		const own = answers.unreadOf(accountId);
		const { answerMemoryBytesMax, answerMemoryAccountBytesMax } = deps.limits();
		if (own > answerMemoryAccountBytesMax) return "account";
		// An account without unread answers passes, because it does not cause the shortage.
		return all > answerMemoryBytesMax && own > 0 ? "all" : undefined;
	}

	return {
		add: answers.addUnread,
		excess,
		/**
		 * Fault rate_limit_exceeded above the account's limit. Fault overloaded above the limit of all accounts, if this
		 * account has unread answers.
		 */
		check(accountId: string) {
			const exceeded = excess(accountId);
			if (exceeded === "account") {
				throw new Fault(
					"rate_limit_exceeded",
					"This account has unread answers. Read them before sending further requests.",
					{ retryAfterS: 1 },
				);
			}
			if (exceeded === "all")
				throw new Fault("overloaded", "The service holds too many unread answers. Please try again.", {
					retryAfterS: 1,
				});
		},
		passed,
		/** Counts an answer in memory until the client has read it. A short answer is returned unchanged. */
		passedBytes(body: Uint8Array, reader: AnswerReader): Uint8Array<ArrayBuffer> | LongBody {
			if (body.length <= SHORT_BYTES) return body as Uint8Array<ArrayBuffer>;
			return passed(piecesOf(body), body.length, reader);
		},
		bytes: (): number => answers.unread(),
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
