import type { Clock } from "../base/clock.ts";
import { createFairPool } from "../base/fair-pool.ts";
import type { Log } from "../base/log.ts";
import { createStates } from "../base/states.ts";
import type { Statements } from "../db/statements.ts";
import type { CreditShortage } from "../money/credit-shortage.ts";
import type { MetricReading } from "./metrics.ts";

/** A request with a known key that was refused before admission. */
export interface Refusal {
	/** UUID. */
	readonly requestId: string;
	readonly accountId: string;
	readonly keyId: string;
	readonly projectId: string | null;
	/** Model named in the request; null if the request was refused before its model was read. */
	readonly model: string | null;
	/** Endpoint as in usage records: `chat`, `embeddings`, … */
	readonly endpoint: string;
	readonly code: string;
	readonly status: number;
	readonly message: string;
	readonly param: string | null;
	/** Amounts of a 402 for insufficient credit; null for other refusals. */
	readonly shortage: CreditShortage | null;
	readonly atMs: number;
}

/** Rows per minute, key and code. Further refusals are counted in `repeats` of the last row. */
export const ROWS_PER_MINUTE_MAX = 10;
/** Rows per minute and account; beyond it, only the first row of each code in the minute. */
export const ACCOUNT_ROWS_PER_MINUTE_MAX = 60;
/** Maximum number of rows that wait for Postgres; above it refusals are dropped. */
export const WAITING_MAX = 2_000;
/** Largest fraction of them of one account. */
const WAITING_SHARE = 1 / 4;
/** Maximum tracked accounts, and pairs with a code. If there are more, all are dropped and their minutes start again. */
const MINUTES_MAX = 20_000;
const MINUTE_MS = 60_000;
/** Longest stored texts of clients. */
const MODEL_CHARS_MAX = 128;
const PARAM_CHARS_MAX = 128;
const MESSAGE_CHARS_MAX = 500;

/** JSON of a row, as the insert statement reads it. */
type RefusalRow = ReturnType<typeof rowOf>;

/** Decides which refusal gets its own row, and which is counted in an earlier row. */
function createRefusalRows({ clock }: { clock: Clock }) {
	const minutes = new Map<string, { readonly sinceMs: number; readonly rows: number; readonly last: RefusalRow }>();
	/** Rows to insert or update. The writer removes them once Postgres has stored them. */
	const waiting = new Map<string, RefusalRow>();
	const room = createFairPool({ size: () => WAITING_MAX, share: () => WAITING_SHARE });

	function put(row: RefusalRow): boolean {
		if (waiting.has(row.id)) return true;
		if (!room.fits(row.account, 1)) return false;
		room.add(row.account, 1);
		waiting.set(row.id, row);
		return true;
	}

	function remove(row: RefusalRow): void {
		if (waiting.delete(row.id)) room.giveBack(row.account);
	}

	/** Adds a refusal. Returns false if there is no room. */
	function take(refusal: Refusal): boolean {
		const nowMs = clock.monotonicMs();
		const { keyId, accountId, code } = refusal;
		const names = [`${keyId} ${code}`, `${accountId} ${code}`, accountId];
		const found = names.map((name) => {
			const known = minutes.get(name);
			return known !== undefined && nowMs - known.sinceMs < MINUTE_MS ? known : undefined;
		});
		const [ofKey, ofCode, ofAccount] = found;
		const isFull = ofKey?.rows === ROWS_PER_MINUTE_MAX || (ofAccount?.rows ?? 0) >= ACCOUNT_ROWS_PER_MINUTE_MAX;
		const last = isFull ? (ofKey ?? ofCode)?.last : undefined;
		if (last !== undefined) {
			if (!put(last)) return false;
			last.repeats += 1;
			last.repeated = refusal.atMs;
			return true;
		}
		const row = rowOf(refusal);
		if (!put(row)) return false;
		if (minutes.size >= MINUTES_MAX) minutes.clear();
		for (const [at, name] of names.entries())
			minutes.set(name, { sinceMs: found[at]?.sinceMs ?? nowMs, rows: (found[at]?.rows ?? 0) + 1, last: row });
		return true;
	}

	return { take, waiting, remove };
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

/** Shortens a text, and replaces control characters and lone surrogates, which Postgres cannot store. */
function plain(text: string, charsMax: number): string {
	return text
		.slice(0, charsMax)
		.toWellFormed()
		.replace(/\p{Cc}/gu, "\u{fffd}");
}

type RefusalsState = "idle" | "armed" | "flushing" | "stopped";

const TRANSITIONS: Readonly<Record<RefusalsState, readonly RefusalsState[]>> = {
	idle: ["armed", "stopped"],
	armed: ["flushing", "stopped"],
	flushing: ["idle", "stopped"],
	stopped: [],
};
const BATCH_ROWS_MAX = 200;
const FLUSH_MS = 1_000;

export type Refusals = ReturnType<typeof createRefusals>;

/**
 * Writes refused requests to Postgres in the background, so that no request waits. The log is only for people to read.
 * Refusals above a limit are counted and dropped.
 */
export function createRefusals({ statements, clock, log }: { statements: Statements; clock: Clock; log: Log }) {
	const { take, waiting, remove } = createRefusalRows({ clock });
	let dropped = 0;
	let droppedSaid = 0;
	let away = false;
	const states = createStates(TRANSITIONS, "idle");
	let cancel = () => {};
	let flushing: Promise<void> | undefined;

	function arm(): void {
		if (!states.is("idle") || waiting.size === 0) return;
		states.enter("armed");
		cancel = clock.after(FLUSH_MS, () => {
			states.enter("flushing");
			flushing = flush().finally(() => {
				if (states.is("flushing")) states.enter("idle");
				arm();
			});
		});
	}

	/** Writes the waiting rows. Never rejects; rows that could not be written wait for the next flush. */
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
				// Dropped, because Postgres would refuse these rows forever, and they would block other rows.
				log.error("the request log rejects refused requests", { rows: rows.length, error });
				dropped += rows.length;
				for (const row of rows) remove(row);
				continue;
			}
			away = false;
			// A row whose `repeats` grew during the write stays, and is written again a second later.
			for (const [at, row] of rows.entries()) if (row.repeats === sent[at]?.repeats) remove(row);
		}
	}

	function sayDropped(): void {
		if (dropped > droppedSaid) log.warn("refused requests are missing in the request log", { dropped });
		droppedSaid = dropped;
	}

	return {
		/** Never throws or waits. */
		record(refusal: Refusal): void {
			if (!take(refusal)) dropped += 1;
			arm();
		},
		waiting: () => waiting.size,
		/** Number of refusals that are counted neither in a row nor in `repeats`. */
		dropped: () => dropped,
		/** Tries once more to write the waiting rows, then stops. */
		async stop() {
			if (!states.is("stopped")) states.enter("stopped");
			cancel();
			await flushing;
			await flush();
		},
	};
}

export function refusalReadings(refusals: Pick<Refusals, "waiting" | "dropped">): MetricReading[] {
	return [
		{
			name: "tollgate_refusals_waiting",
			help: "Refused requests that are not in the request log yet.",
			read: () => refusals.waiting(),
		},
		{
			name: "tollgate_refusals_dropped_total",
			help: "Refused requests missing from the request log.",
			read: () => refusals.dropped(),
		},
	];
}

/** Inserts rows by id, so that a retry is safe. In an existing row only `repeats` changes. */
async function write(statements: Statements, rows: readonly RefusalRow[]): Promise<void> {
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

/** True for SQLSTATE classes 22 and 23: the values are wrong, not the connection. */
function isAboutRows(error: unknown): boolean {
	const { code } = error as { code?: unknown };
	return typeof code === "string" && /^2[23]\d/.test(code);
}
