import { CounterMap } from "../../base/counter-map.ts";

export type StreamCopies = ReturnType<typeof createStreamCopies>;

export interface StreamCopy {
	/** Adds characters; returns false if memory is short or the copy was dropped. */
	add(chars: number): boolean;
	/** Frees the memory. Idempotent. */
	letGo(): void;
}

/**
 * Limits of all accounts and of one: some hundred usual streams. Beyond them a stream's repetition gets 409 with its
 * cost.
 */
const COPIES_BYTES_MAX = 256 * 1024 * 1024;
const COPIES_ACCOUNT_BYTES_MAX = 64 * 1024 * 1024;
/** The runtime stores a string with one byte per character, or two if one is beyond Latin-1. */
const CHAR_BYTES = 2;

/** Memory for copies of streams with an idempotency key. A stream without memory passes and is not kept. */
export function createStreamCopies({ bytesMax = COPIES_BYTES_MAX, accountBytesMax = COPIES_ACCOUNT_BYTES_MAX } = {}) {
	const ofAccounts = new CounterMap();
	let all = 0;

	return {
		begin(accountId: string): StreamCopy {
			let held = 0;
			let isOver = false;
			return {
				add(chars) {
					const bytes = chars * CHAR_BYTES;
					if (isOver || all + bytes > bytesMax || ofAccounts.of(accountId) + bytes > accountBytesMax) return false;
					held += bytes;
					all += bytes;
					ofAccounts.add(accountId, bytes);
					return true;
				},
				letGo() {
					isOver = true;
					all -= held;
					if (held > 0) ofAccounts.add(accountId, -held);
					held = 0;
				},
			};
		},
		bytes: (): number => all,
	};
}
