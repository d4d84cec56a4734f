import type { Clock } from "../base/clock.ts";
import type { CreditShortage } from "../money/credit-shortage.ts";

/** A request of a known key that was answered with an error before it was admitted. */
export interface Refusal {
	/** UUID. */
	readonly requestId: string;
	readonly accountId: string;
	readonly keyId: string;
	/** That the key belonged to; null for none. */
	readonly projectId: string | null;
	/** As asked for; null if the request was not read so far. */
	readonly model: string | null;
	/** `chat`, `embeddings` …, as in usage records. */
	readonly endpoint: string;
	readonly code: string;
	/** HTTP. */
	readonly status: number;
	/** What the client was told. */
	readonly message: string;
	readonly param: string | null;
	/** Of a 402 for want of credit. */
	readonly shortage: CreditShortage | null;
	readonly atMs: number;
}

/** Rows of one key with one code in a minute; further ones are counted in `repeats` of the last of them. */
export const ROWS_PER_MINUTE_MAX = 10;
/** Rows that wait for Postgres; beyond it refusals are dropped. */
export const WAITING_MAX = 2_000;
/** Keys and codes whose minute is known; beyond it refusals of others are dropped until a minute is over. */
const MINUTES_MAX = 20_000;
const MINUTE_MS = 60_000;
/** Texts come from clients. */
const MODEL_CHARS_MAX = 128;
const PARAM_CHARS_MAX = 128;
const MESSAGE_CHARS_MAX = 500;

/** As the statement that writes it reads it. */
export interface RefusalRow extends Pick<Refusal, "model" | "endpoint" | "code" | "status" | "message" | "param"> {
	readonly id: string;
	readonly account: string;
	readonly key: string;
	readonly project: string | null;
	readonly available: number | null;
	readonly held: number | null;
	readonly required: number | null;
	readonly tokens: number | null;
	readonly at: number;
	repeats: number;
	repeated: number | null;
}

/** One key's refusals with one code; its minute begins with the first. */
interface Minute {
	readonly sinceMs: number;
	rows: number;
	last: RefusalRow;
}

/** Which refusal has a row of its own, and which is counted in another's. */
export function createRefusalRows({ clock }: { clock: Clock }) {
	const minutes = new Map<string, Minute>();
	/** To be written, or written again because they were repeated; who has written one takes it out. */
	const waiting = new Map<string, RefusalRow>();

	function put(row: RefusalRow): boolean {
		if (waiting.size >= WAITING_MAX && !waiting.has(row.id)) return false;
		waiting.set(row.id, row);
		return true;
	}

	/** False if there was no room for it. */
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

function rowOf(refusal: Refusal): RefusalRow {
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
		repeated: null,
	};
}

/** Cut, and without what Postgres' text does not take: zero bytes, halves of characters. */
function plain(text: string, charsMax: number): string {
	return text
		.slice(0, charsMax)
		.toWellFormed()
		.replace(/\p{Cc}/gu, "\u{fffd}");
}
