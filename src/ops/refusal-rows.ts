import type { Clock } from "../base/clock.ts";
import type { CreditShortage } from "../money/credit-shortage.ts";

/** A request of a known key that was answered with an error before admission. */
export interface Refusal {
	/** UUID. */
	readonly requestId: string;
	readonly accountId: string;
	readonly keyId: string;
	/** The key's project; null for none. */
	readonly projectId: string | null;
	/** As requested; null if the request was refused before its model was read. */
	readonly model: string | null;
	/** `chat`, `embeddings` …, as in usage records. */
	readonly endpoint: string;
	readonly code: string;
	/** HTTP status. */
	readonly status: number;
	/** The message sent to the client. */
	readonly message: string;
	readonly param: string | null;
	/** Set for a 402 without enough credit. */
	readonly shortage: CreditShortage | null;
	readonly atMs: number;
}

/** Rows of one key and code per minute; further refusals are counted in `repeats` of the last row. */
export const ROWS_PER_MINUTE_MAX = 10;
/** Rows waiting for Postgres; above it refusals are dropped. */
export const WAITING_MAX = 2_000;
/** Keys and codes whose minute is tracked; above it refusals of others are dropped until a minute ends. */
const MINUTES_MAX = 20_000;
const MINUTE_MS = 60_000;
/** Bounds of texts that clients choose. */
const MODEL_CHARS_MAX = 128;
const PARAM_CHARS_MAX = 128;
const MESSAGE_CHARS_MAX = 500;

/** The form that the insert statement reads. */
export type RefusalRow = ReturnType<typeof rowOf>;

/** One key's refusals with one code; its minute begins with the first. */
interface Minute {
	readonly sinceMs: number;
	rows: number;
	last: RefusalRow;
}

/** Decides which refusal gets its own row, and which is counted in another's. */
export function createRefusalRows({ clock }: { clock: Clock }) {
	const minutes = new Map<string, Minute>();
	/** Rows to insert or update; the writer removes them. */
	const waiting = new Map<string, RefusalRow>();

	function put(row: RefusalRow): boolean {
		if (waiting.size >= WAITING_MAX && !waiting.has(row.id)) return false;
		waiting.set(row.id, row);
		return true;
	}

	/** False if there was no room. */
	function take(refusal: Refusal): boolean {
		const nowMs = clock.monotonicMs();
		const name = `${refusal.keyId} ${refusal.code}`;
		const minute = minutes.get(name);
		if (minute !== undefined && nowMs - minute.sinceMs < MINUTE_MS) {
			if (minute.rows < ROWS_PER_MINUTE_MAX) {
				const row = rowOf(refusal);
				if (!put(row)) return false;
				minute.rows += 1;
				minute.last = row;
				return true;
			}
			if (!put(minute.last)) return false;
			minute.last.repeats += 1;
			minute.last.repeated = refusal.atMs;
			return true;
		}
		if (minute === undefined && minutes.size >= MINUTES_MAX) forgetMinutes(nowMs);
		if (minute === undefined && minutes.size >= MINUTES_MAX) return false;
		const row = rowOf(refusal);
		if (!put(row)) return false;
		minutes.set(name, { sinceMs: nowMs, rows: 1, last: row });
		return true;
	}

	function forgetMinutes(nowMs: number): void {
		for (const [name, { sinceMs }] of minutes) if (nowMs - sinceMs >= MINUTE_MS) minutes.delete(name);
	}

	return { take, waiting };
}

function rowOf(refusal: Refusal) {
	const { shortage } = refusal;
	return {
		id: refusal.requestId,
		account: refusal.accountId,
		key: refusal.keyId,
		project: refusal.projectId,
		model: refusal.model === null ? null : plain(refusal.model, MODEL_CHARS_MAX),
		endpoint: refusal.endpoint,
		code: refusal.code,
		status: refusal.status,
		message: plain(refusal.message, MESSAGE_CHARS_MAX),
		param: refusal.param === null ? null : plain(refusal.param, PARAM_CHARS_MAX),
		available: shortage?.availableNanoUsd ?? null,
		held: shortage?.heldNanoUsd ?? null,
		required: shortage?.requiredNanoUsd ?? null,
		tokens: shortage?.affordableMaxTokens ?? null,
		at: refusal.atMs,
		repeats: 0,
		repeated: null as number | null,
	};
}

/** Cuts the text and replaces what a Postgres text cannot hold: control characters (zero bytes) and lone surrogates. */
function plain(text: string, charsMax: number): string {
	return text
		.slice(0, charsMax)
		.toWellFormed()
		.replace(/\p{Cc}/gu, "\u{fffd}");
}
