import { replaceUnstorable } from "../base/stored-text.ts";
import { onlyRow } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import type { KeyDigest } from "../keys/secret.ts";
import { type NanoUsd, nanoUsdOfColumn } from "../money/nano-usd.ts";
import type { BatchCounts, BatchEnding, BatchPause, BatchProblem, BatchRecord, BatchUsage } from "./batch-record.ts";

export interface NewBatch
	extends Pick<BatchRecord, "id" | "accountId" | "keyId" | "inputFileId" | "completionWindow" | "metadata"> {
	readonly endpoint: string;
	readonly outputExpiresS: number | null;
	readonly idempotencyKey: string | null;
	/** Time limit of the batch, measured by Postgres's clock, because gateways' clocks may differ by a day. */
	readonly windowMs: number;
}

export interface ClaimedLine {
	readonly line: number;
	readonly id: string;
	/** UUID of the request for which this run claimed the line earlier; null: none. */
	readonly was?: string | null;
}

/** Outcome of a line. `part`: number of the output or error file's part that has it; null for a freed line. */
export interface LineOutcome extends ClaimedLine, Omit<BatchUsage, "chargedNanoUsd"> {
	readonly state: "output" | "error" | "free";
	readonly part: number | null;
	readonly charged: NanoUsd;
}

export interface LineRow extends Omit<LineOutcome, "state"> {
	readonly state: "claimed" | "free" | "output" | "error";
}

/** Progress of a run, which the run stores with each tick. */
export interface BatchProgress extends BatchCounts, BatchUsage {
	readonly paused: BatchPause | null;
}

/** Thrown if a newer run has taken over the batch. Outcomes of this run that are not stored are dropped. */
export class RunLost extends Error {
	override readonly name = "RunLost" as const;
}

/** Batches in Postgres. Each method is one SQL statement, which may be repeated. */
export type BatchBooks = ReturnType<typeof createBatchBooks>;

const LINES_PAGE = 2_000;
/** Maximum number of rows that one statement deletes. */
const LINES_DROPPED = 5_000;

export function createBatchBooks({ statements }: { statements: Statements }) {
	return { ...asAsked(statements), ...asRun(statements), ...linesOfRuns(statements) };
}

function asAsked(statements: Statements) {
	return {
		/** Creates a batch; a repeated call returns the same batch. Undefined if the account has `openMax` open batches. */
		async create(batch: NewBatch, openMax: number): Promise<BatchRecord | undefined> {
			const [row] = await statements<{ batch: BatchRecord | null }>`
				select batch_create(${batch.id}, ${batch.accountId}, ${batch.keyId}, ${batch.endpoint}, ${batch.inputFileId},
					${batch.completionWindow}, ${JSON.stringify(batch.metadata)}::text::jsonb, ${batch.outputExpiresS}::integer,
					${batch.idempotencyKey}::text, ${batch.windowMs}, ${openMax}) as batch`;
			return row?.batch ?? undefined;
		},

		async find(accountId: string, id: string): Promise<BatchRecord | undefined> {
			return one(
				await statements`select batch_fields(b) as batch from batch b where b.id = ${id} and b.account_id = ${accountId}`,
			);
		},

		async findRepeated(keyId: string, idempotencyKey: string): Promise<BatchRecord | undefined> {
			const rows = await statements<{ batch: BatchRecord }>`
				select batch_fields(b) as batch from batch b where b.key_id = ${keyId} and b.idempotency_key = ${idempotencyKey}`;
			return one(rows);
		},

		/** The account's batches after the id `after`, newest first. */
		async list(accountId: string, after: string | null, limit: number): Promise<BatchRecord[]> {
			const rows = await statements<{ batch: BatchRecord }>`
				select batch_fields(b) as batch from batch b
				where b.account_id = ${accountId} and (${after}::text is null or b.id < ${after}) order by b.id desc limit ${limit}`;
			return rows.map(({ batch }) => batch);
		},

		/** Requests a batch's cancellation and returns it; undefined if there is none. An ended batch stays unchanged. */
		async cancel(accountId: string, id: string): Promise<BatchRecord | undefined> {
			return one(
				await statements`
					with c as (
						update batch b set state = 'cancelling', cancelling_at = clock_timestamp(), ending = 'cancelled'
						where b.id = ${id} and b.account_id = ${accountId} and b.state in ('validating', 'in_progress')
						returning b.id, batch_fields(b) as batch)
					select batch from c union all
					select batch_fields(b) from batch b where b.id = ${id} and b.account_id = ${accountId} and not exists (select 1 from c)`,
			);
		},
	};
}

function asRun(statements: Statements) {
	return {
		/** A page of all accounts' open batches by id, after the id `after`. */
		open(after: string, limit: number): Promise<{ id: string; accountId: string }[]> {
			return statements<{ id: string; accountId: string }>`
				select id, account_id as "accountId" from batch
				where state in ('validating', 'in_progress', 'finalizing', 'cancelling') and id > ${after} order by id limit ${limit}`;
		},

		/**
		 * Starts a run and invalidates the earlier run; undefined if the batch has ended. `isPast`: the batch's time limit
		 * has passed by Postgres's clock.
		 */
		async take(id: string): Promise<{ batch: BatchRecord; keyDigest: KeyDigest | null; isPast: boolean } | undefined> {
			const [row] = await statements<{ batch: BatchRecord; keyDigest: KeyDigest | null; isPast: boolean }>`
				with t as (
					update batch b set run = run + 1
					where b.id = ${id} and b.state in ('validating', 'in_progress', 'finalizing', 'cancelling')
					returning b.key_id, b.expires_at <= clock_timestamp() as past, batch_fields(b) as batch)
				select t.batch, k.digest as "keyDigest", t.past as "isPast" from t left join api_key k on k.id = t.key_id`;
			return row;
		},

		/** Records that the input was checked and the output files exist. Undefined if a newer run has taken over. */
		async begin(id: string, run: number, facts: { model: string; total: number }): Promise<BatchRecord | undefined> {
			return one(
				await statements`
					update batch b set model = ${facts.model}, total = ${facts.total}, in_progress_at = coalesce(in_progress_at, clock_timestamp()),
						state = case when state = 'validating' then 'in_progress' else state end
					where b.id = ${id} and b.run = ${run} returning batch_fields(b) as batch`,
			);
		},

		/** Stores the ids of the output and error files. False if a newer run has taken over. */
		async writes(id: string, run: number, files: { output: string; error: string }): Promise<boolean> {
			const rows = await statements`
				update batch set output_file_id = ${files.output}, error_file_id = ${files.error} where id = ${id} and run = ${run} returning id`;
			return rows.length === 1;
		},

		/**
		 * Stores progress. Returns the batch with requested changes, and `isPast` as in `take`; undefined if a newer run
		 * has taken over.
		 */
		async tick(id: string, run: number, now: BatchProgress): Promise<(BatchRecord & { isPast: boolean }) | undefined> {
			const [row] = await statements<{ batch: BatchRecord; isPast: boolean }>`
				update batch b set completed = ${now.completed}, failed = ${now.failed}, prompt_tokens = ${now.promptTokens},
					cached_tokens = ${now.cachedTokens}, completion_tokens = ${now.completionTokens},
					reasoning_tokens = ${now.reasoningTokens}, charged_nano_usd = ${now.chargedNanoUsd},
					paused = ${now.paused === null ? null : JSON.stringify(now.paused)}::text::jsonb
				where b.id = ${id} and b.run = ${run}
				returning batch_fields(b) as batch, b.expires_at <= clock_timestamp() as "isPast"`;
			return row && { ...row.batch, isPast: row.isPast };
		},

		/** Records how the batch ends, after which no line is sent. False if a newer run has taken over. */
		async finalize(
			id: string,
			run: number,
			ending: BatchEnding,
			problems: readonly BatchProblem[] | null,
		): Promise<boolean> {
			const rows = await statements`
				update batch b set ending = ${ending}, paused = null, finalizing_at = coalesce(finalizing_at, clock_timestamp()),
					errors = coalesce(${problems === null ? null : jsonOf(problems)}::text::jsonb, errors),
					state = case when ${ending} in ('completed', 'expired') then 'finalizing' else state end
				where b.id = ${id} and b.run = ${run} returning b.id`;
			return rows.length === 1;
		},

		/**
		 * Ends the batch with its finished files; null for an empty file. Creates its notices. The files' lifetime starts
		 * now, because they were not readable before. Refunds requests whose claim a failover lost. A repeated call refunds
		 * nothing, because the claims of an ended batch are deleted.
		 */
		async end(
			id: string,
			run: number,
			end: { ending: BatchEnding; output: string | null; error: string | null },
		): Promise<boolean> {
			const { ending, output, error } = end;
			const rows = await statements`
				with ended as (
				update batch b set state = ${ending}, ending = ${ending}, paused = null, output_file_id = ${output}, error_file_id = ${error},
					completed_at = case when ${ending} = 'completed' then clock_timestamp() end,
					failed_at = case when ${ending} = 'failed' then clock_timestamp() end,
					expired_at = case when ${ending} = 'expired' then clock_timestamp() end,
					cancelled_at = case when ${ending} = 'cancelled' then clock_timestamp() end,
					cancelling_at = case when ${ending} = 'cancelled' then coalesce(cancelling_at, clock_timestamp()) end
				where b.id = ${id} and b.run = ${run} returning b.id, b.account_id, b.output_expires_s
				), kept as (
					update stored_file f set expires_at = now() + make_interval(secs => e.output_expires_s) from ended e
						where e.output_expires_s is not null and f.id in (${output}, ${error}) and f.state = 'ready'
				), told as (
					insert into batch_end (batch_id) select e.id from ended e
						where exists (select 1 from batch_notice_setting s where s.account_id = e.account_id)
					on conflict do nothing
				), lost as (
					insert into batch_lost_request (request_id, batch_id, account_id)
						select u.request_id, b.id, b.account_id from ended e join batch b on b.id = e.id join usage_event u on u.batch_id = ${id}
						where b.state not in ('completed', 'failed', 'expired', 'cancelled') and u.charged_nano_usd > 0
							and u.request_id not in (select l.request_id from batch_line l where l.batch_id = ${id})
							and not exists (select 1 from ledger_entry c where c.source_ref = 'batch-lost:' || u.request_id)
					on conflict do nothing)
				select id from ended`;
			return rows.length === 1;
		},
	};
}

function linesOfRuns(statements: Statements) {
	return {
		/** Claims lines. Returns those that this run may send (see `batch_claim`). */
		async claim(id: string, run: number, lines: readonly ClaimedLine[]): Promise<ReadonlySet<number>> {
			const rows = await statements<{ line: number }>`
				select line from batch_claim(${id}, ${run}, ${JSON.stringify(lines)}::text::json) as line`;
			return new Set(rows.map(({ line }) => line));
		},

		/** Stores outcomes. False if a newer run has taken over (see `batch_outcomes`). */
		async outcomes(id: string, run: number, lines: readonly LineOutcome[]): Promise<boolean> {
			const rows = await statements<{ ok: boolean }>`
				select batch_outcomes(${id}, ${run}, ${JSON.stringify(lines)}::text::json) as ok`;
			return onlyRow(rows).ok;
		},

		/**
		 * Deletes some lines of ended batches; true if there may be more. Selects them by ctid, because selecting by key
		 * makes Postgres read the rows of all open batches.
		 */
		async dropLines(): Promise<boolean> {
			const [row] = await statements<{ lines: number }>`
				with recursive id (batch_id) as (
					(select l.batch_id from batch_line l order by l.batch_id limit 1)
					union all
					select (select l.batch_id from batch_line l where l.batch_id > id.batch_id order by l.batch_id limit 1)
						from id where id.batch_id is not null
				), dropped as (
					delete from batch_line d where d.ctid = any (array(
						select l.row from id
							join batch b on b.id = id.batch_id and b.state in ('completed', 'failed', 'expired', 'cancelled')
							cross join lateral (select o.ctid as row from batch_line o where o.batch_id = b.id limit ${LINES_DROPPED}) l
						limit ${LINES_DROPPED})) returning 1
				)
				select count(*)::integer as lines from dropped`;
			return row?.lines === LINES_DROPPED;
		},

		/**
		 * Frees lines whose request was interrupted with an earlier run, so that they are sent again; `refundLostRequests`
		 * refunds the interrupted request. False if a newer run has taken over (see `batch_reopen`).
		 */
		async reopen(id: string, run: number, lines: readonly ClaimedLine[]): Promise<boolean> {
			const rows = await statements<{ ok: boolean }>`
				select batch_reopen(${id}, ${run}, ${JSON.stringify(lines)}::text::json) as ok`;
			return onlyRow(rows).ok;
		},

		/** A page of the batch's claimed lines in order, after the line `after`. */
		async lines(id: string, after: number): Promise<LineRow[]> {
			const rows = await statements<Omit<LineRow, "charged"> & { charged: string }>`
				select line, request_id as id, state, part, prompt_tokens as "promptTokens", cached_tokens as "cachedTokens",
					completion_tokens as "completionTokens", reasoning_tokens as "reasoningTokens", charged_nano_usd as charged
				from batch_line where batch_id = ${id} and line > ${after} order by line limit ${LINES_PAGE}`;
			return rows.map((row) => ({ ...row, charged: nanoUsdOfColumn(row.charged) }));
		},
	};
}

/** Replaces characters that Postgres cannot store, because messages quote the input. */
const jsonOf = (problems: readonly BatchProblem[]) =>
	JSON.stringify(problems, (_, value: unknown) => (typeof value === "string" ? replaceUnstorable(value) : value));
const one = (rows: { batch: BatchRecord }[]): BatchRecord | undefined => rows[0]?.batch;
