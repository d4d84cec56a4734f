import type { Clock } from "../../base/clock.ts";

/** A whole answer, as it left. */
export interface StoredAnswer {
	readonly status: number;
	readonly headers: readonly (readonly [string, string])[];
	readonly body: Uint8Array;
}

export type Claim =
	/** Nobody has used this key: go on, and end with `store` or `release`. */
	| { readonly state: "new"; store(answer: StoredAnswer): void; release(): void }
	/** The first request is still running. */
	| { readonly state: "running" }
	/** The key belongs to another request. */
	| { readonly state: "mismatch" }
	| { readonly state: "stored"; readonly answer: StoredAnswer };

/**
 * Answers by idempotency key, in the memory of one instance. Bounded: beyond a bound the oldest answers are forgotten,
 * first those of the account that stores one too many.
 */
export interface IdempotencyStore {
	/** `owner` is whoever shares the bound, `key` is unique over all owners, `fingerprint` stands for the whole request. */
	claim(owner: string, key: string, fingerprint: string): Claim;
	size(): { entries: number; bytes: number };
}

export interface IdempotencyLimits {
	readonly bytesMax: number;
	readonly ownerBytesMax: number;
	readonly ownerEntriesMax: number;
	readonly keepMs: number;
}

/** An answer that alone takes more than an account's share is not kept. */
const DEFAULT_LIMITS: IdempotencyLimits = {
	bytesMax: 64 * 1024 * 1024,
	ownerBytesMax: 8 * 1024 * 1024,
	ownerEntriesMax: 1_000,
	keepMs: 24 * 60 * 60_000,
};
/** What an entry takes beside its body. */
const ENTRY_BYTES = 1_024;

interface Entry {
	readonly owner: string;
	readonly fingerprint: string;
	/** Undefined while the request runs. */
	answer: StoredAnswer | undefined;
	bytes: number;
	storedAtMs: number;
}

export function createIdempotencyStore(
	deps: { clock: Clock },
	limits: IdempotencyLimits = DEFAULT_LIMITS,
): IdempotencyStore {
	const { clock } = deps;
	const entries = new Map<string, Entry>();
	/** By owner, the keys of stored answers, oldest first. */
	const stored = new Map<string, Set<string>>();
	/** All stored keys, oldest first. */
	const order = new Set<string>();
	const ownerBytes = new Map<string, number>();
	let bytes = 0;

	function forget(key: string): void {
		const entry = entries.get(key);
		if (entry?.answer === undefined) return;
		entries.delete(key);
		order.delete(key);
		bytes -= entry.bytes;
		const left = (ownerBytes.get(entry.owner) ?? 0) - entry.bytes;
		const keys = stored.get(entry.owner);
		keys?.delete(key);
		if (keys === undefined || keys.size === 0) {
			stored.delete(entry.owner);
			ownerBytes.delete(entry.owner);
		} else ownerBytes.set(entry.owner, left);
	}

	function forgetOld(): void {
		for (const key of order) {
			const entry = entries.get(key);
			if (entry !== undefined && clock.monotonicMs() - entry.storedAtMs < limits.keepMs) return;
			forget(key);
		}
	}

	function makeRoom(owner: string, needed: number): void {
		const own = stored.get(owner);
		for (const key of own ?? []) {
			const full = (own?.size ?? 0) >= limits.ownerEntriesMax;
			if (!full && (ownerBytes.get(owner) ?? 0) + needed <= limits.ownerBytesMax) break;
			forget(key);
		}
		for (const key of order) {
			if (bytes + needed <= limits.bytesMax) break;
			forget(key);
		}
	}

	function keep(key: string, entry: Entry, answer: StoredAnswer): void {
		const size = answer.body.length + ENTRY_BYTES;
		if (size > limits.ownerBytesMax || size > limits.bytesMax) {
			entries.delete(key);
			return;
		}
		makeRoom(entry.owner, size);
		entry.answer = answer;
		entry.bytes = size;
		entry.storedAtMs = clock.monotonicMs();
		bytes += size;
		order.add(key);
		ownerBytes.set(entry.owner, (ownerBytes.get(entry.owner) ?? 0) + size);
		const keys = stored.get(entry.owner) ?? new Set();
		stored.set(entry.owner, keys.add(key));
	}

	return {
		claim(owner, key, fingerprint) {
			forgetOld();
			const known = entries.get(key);
			if (known !== undefined) {
				if (known.fingerprint !== fingerprint) return { state: "mismatch" };
				return known.answer === undefined ? { state: "running" } : { state: "stored", answer: known.answer };
			}
			const entry: Entry = { owner, fingerprint, answer: undefined, bytes: 0, storedAtMs: 0 };
			entries.set(key, entry);
			const open = () => entries.get(key) === entry && entry.answer === undefined;
			return {
				state: "new",
				store: (answer) => {
					if (open()) keep(key, entry, answer);
				},
				release: () => {
					if (open()) entries.delete(key);
				},
			};
		},
		size: () => ({ entries: entries.size, bytes }),
	};
}
