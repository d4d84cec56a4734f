import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Statements } from "../db/statements.ts";
import type { CreditShortage } from "../money/credit-shortage.ts";
import type { Reading } from "./metrics.ts";

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

/**
 * Writes refused requests behind, for people to read. They are no books: what does not fit is counted and let go, and
 * nothing ever waits for this.
 */
export interface Refusals {
	/** Never throws and never waits. */
	record(refusal: Refusal): void;
	/** Rows that Postgres does not have yet. */
	waiting(): number;
	/** Refusals that are on no row and in no row's `repeats`. */
	dropped(): number;
	/** Tries once more to write what waits. */
	stop(): Promise<void>;
}

/** Rows of one key with one code in a minute; further ones are counted in `repeats` of the last of them. */
export const ROWS_PER_MINUTE_MAX = 10;
/** Rows that wait for Postgres; beyond it refusals are dropped. */
export const WAITING_MAX = 2_000;
/** Keys and codes whose minute is known; beyond it refusals of others are dropped until a minute is over. */
const MINUTES_MAX = 20_000;
const BATCH_ROWS_MAX = 200;
const FLUSH_MS = 1_000;
const MINUTE_MS = 60_000;
/** Texts come from clients. */
const MODEL_CHARS_MAX = 128;
const PARAM_CHARS_MAX = 128;
const MESSAGE_CHARS_MAX = 500;

/** The row as the statement below reads it. */
interface Row {
	readonly id: string;
	readonly account: string;
	readonly key: string;
	readonly project: string | null;
	readonly model: string | null;
	readonly endpoint: string;
	readonly code: string;
	readonly status: number;
	readonly message: string;
	readonly param: string | null;
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
	last: Row;
}

export function createRefusals(deps: { statements: Statements; clock: Clock; log: Log }): Refusals {
	const { statements, clock, log } = deps;
	const minutes = new Map<string, Minute>();
	/** Rows to be written, or written again because they were repeated. */
	const waiting = new Map<string, Row>();
	let dropped = 0;
	let droppedSaid = 0;
	let away = false;
	let stopped = false;
	let cancel: (() => void) | undefined;
	let flushing: Promise<void> | undefined;

	function put(row: Row): boolean {
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

	function arm(): void {
		if (stopped || cancel !== undefined || flushing !== undefined || waiting.size === 0) return;
		cancel = clock.after(FLUSH_MS, () => {
			cancel = undefined;
			flushing = flush().finally(() => {
				flushing = undefined;
				arm();
			});
		});
	}

	/** Never rejects. What cannot be written stays, within the bound, for the next time. */
	async function flush(): Promise<void> {
		sayDropped();
		const all = [...waiting.values()];
		for (let from = 0; from < all.length; from += BATCH_ROWS_MAX) {
			const rows = all.slice(from, from + BATCH_ROWS_MAX);
			const sent = rows.map((row) => ({ ...row }));
			try {
				await write(statements, sent);
			} catch (error) {
				if (!isAboutRows(error)) {
					if (!away) log.warn("refused requests cannot be written to the request log right now", { error });
					away = true;
					return;
				}
				// Such rows would be refused again for ever, and hold up the others.
				log.error("refused requests do not fit the request log", { rows: rows.length, error });
				dropped += rows.length;
				for (const row of rows) waiting.delete(row.id);
				continue;
			}
			away = false;
			// One that was repeated meanwhile is written again, a second later.
			for (const [at, row] of rows.entries()) if (row.repeats === sent[at]?.repeats) waiting.delete(row.id);
		}
	}

	function sayDropped(): void {
		if (dropped > droppedSaid) log.warn("refused requests are missing in the request log", { dropped });
		droppedSaid = dropped;
	}

	return {
		record(refusal) {
			if (!take(refusal)) dropped += 1;
			arm();
		},
		waiting: () => waiting.size,
		dropped: () => dropped,
		async stop() {
			stopped = true;
			cancel?.();
			cancel = undefined;
			await flushing;
			await flush();
		},
	};
}

export function refusalReadings(refusals: Pick<Refusals, "waiting" | "dropped">): Reading[] {
	return [
		{
			name: "tollgate_refusals_waiting",
			help: "Refused requests that the request log does not have yet.",
			read: () => refusals.waiting(),
		},
		{
			name: "tollgate_refusals_dropped_total",
			help: "Refused requests that the request log will never have.",
			read: () => refusals.dropped(),
		},
	];
}

/** By id, so that it may be sent again; a row that is there already only takes in newer repeats. */
async function write(statements: Statements, rows: readonly Row[]): Promise<void> {
	await statements`
		insert into refused_request as known (request_id, account_id, key_id, project_id, model, endpoint, code, status, message, param,
			available_nano_usd, held_nano_usd, required_nano_usd, affordable_tokens, refused_at, repeats, repeated_at)
		select r.id, r.account, r.key, r.project, r.model, r.endpoint, r.code, r.status, r.message, r.param, r.available, r.held, r.required,
			r.tokens, to_timestamp(r.at / 1000), r.repeats, to_timestamp(r.repeated / 1000)
		from json_to_recordset(${JSON.stringify(rows)}::text::json) as r(id uuid, account text, key text, project text, model text, endpoint text,
			code text, status integer, message text, param text, available bigint, held bigint, required bigint, tokens integer,
			at double precision, repeats integer, repeated double precision)
		on conflict (request_id) do update set repeats = excluded.repeats, repeated_at = excluded.repeated_at
		where known.repeats < excluded.repeats`;
}

/** SQLSTATE classes 22 and 23: the values are at fault, not the connection. */
function isAboutRows(error: unknown): boolean {
	const { code } = error as { code?: unknown };
	return typeof code === "string" && /^2[23]\d/.test(code);
}

function rowOf(refusal: Refusal): Row {
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
