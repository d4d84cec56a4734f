import { CounterMap } from "../../base/counter-map.ts";

/** Memory of copies of keyed streams that are under way. What finds none is not kept, and passes all the same. */
export interface StreamCopies {
	begin(accountId: string): StreamCopy;
	bytes(): number;
}

export interface StreamCopy {
	/** So many characters more. False if there is no memory for them, or it was let go. */
	add(chars: number): boolean;
	/** It is kept elsewhere, or not at all. May be repeated. */
	letGo(): void;
}

/** Of all accounts, and of one: some hundred streams of usual length. Beyond either a stream's repetition hears 409 with what it cost. */
const COPIES_BYTES_MAX = 256 * 1024 * 1024;
const COPIES_ACCOUNT_BYTES_MAX = 64 * 1024 * 1024;
/** The runtime keeps a text in one byte a character, and in two if any of them is beyond Latin-1. */
const CHAR_BYTES = 2;

export function createStreamCopies({
	bytesMax = COPIES_BYTES_MAX,
	accountBytesMax = COPIES_ACCOUNT_BYTES_MAX,
} = {}): StreamCopies {
	const ofAccounts = new CounterMap();
	let all = 0;

	return {
		begin(accountId) {
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
		bytes: () => all,
	};
}
