import { sql } from "drizzle-orm";
import { bigint, index, integer, jsonb, pgTable, primaryKey, text, timestamp, unique, uuid } from "drizzle-orm/pg-core";

const count = (name: string) => integer(name).notNull().default(0);
const sum = (name: string) => bigint(name, { mode: "number" }).notNull().default(0);
const moment = (name: string) => timestamp(name, { withTimezone: true });

/** Batches of accounts. Prompts and answers are only in the encrypted files. */
export const batch = pgTable(
	"batch",
	{
		/** `batch_…`, sortable by time. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		/** Key that created the batch and is charged for its lines. */
		keyId: text("key_id").notNull(),
		endpoint: text().notNull(),
		inputFileId: text("input_file_id").notNull(),
		completionWindow: text("completion_window").notNull(),
		metadata: jsonb(),
		/** Seconds for which the output files are kept; null: the default. */
		outputExpiresS: integer("output_expires_s"),
		idempotencyKey: text("idempotency_key"),
		state: text({
			enum: ["validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"],
		}).notNull(),
		/** How the batch will end; null until that is decided. */
		ending: text({ enum: ["completed", "expired", "cancelled", "failed"] }),
		/** Number of the current run. Statements of earlier runs have no effect. */
		run: integer().notNull().default(0),
		/** Model of all lines; null until the input was read. */
		model: text(),
		/** Reason why the batch is paused: `{code, message, sinceMs}`. */
		paused: jsonb(),
		/** Mistakes in the input, or the reason why the batch was stopped: `[{code, message, param, line}]`. */
		errors: jsonb(),
		total: count("total"),
		completed: count("completed"),
		failed: count("failed"),
		promptTokens: sum("prompt_tokens"),
		cachedTokens: sum("cached_tokens"),
		completionTokens: sum("completion_tokens"),
		reasoningTokens: sum("reasoning_tokens"),
		chargedNanoUsd: sum("charged_nano_usd"),
		/** Ids of the result files, which customers see after the batch has ended. */
		outputFileId: text("output_file_id"),
		errorFileId: text("error_file_id"),
		createdAt: moment("created_at").notNull(),
		expiresAt: moment("expires_at").notNull(),
		inProgressAt: moment("in_progress_at"),
		finalizingAt: moment("finalizing_at"),
		completedAt: moment("completed_at"),
		failedAt: moment("failed_at"),
		expiredAt: moment("expired_at"),
		cancellingAt: moment("cancelling_at"),
		cancelledAt: moment("cancelled_at"),
	},
	(table) => [
		index("batch_account").on(table.accountId, table.id),
		index("batch_open")
			.on(table.id)
			.where(sql`${table.state} in ('validating', 'in_progress', 'finalizing', 'cancelling')`),
		unique("batch_idempotency").on(table.keyId, table.idempotencyKey),
	],
);

/** Requests whose run ended before it stored their outcome. Their lines are sent again, and their charges refunded. */
export const batchLostRequest = pgTable("batch_lost_request", {
	requestId: uuid("request_id").primaryKey(),
	batchId: text("batch_id").notNull(),
	accountId: text("account_id").notNull(),
	lostAt: moment("lost_at").notNull().defaultNow(),
});

/**
 * Lines of open batches. A row is written before its line is sent, later names the part of the file with the outcome,
 * and is deleted after the batch has ended.
 */
export const batchLine = pgTable(
	"batch_line",
	{
		batchId: text("batch_id").notNull(),
		/** Line number in the input, from 1. */
		line: integer().notNull(),
		requestId: uuid("request_id").notNull(),
		/** `free`: no request was charged, so the line may be sent again. `output`, `error`: the file with the outcome. */
		state: text({ enum: ["claimed", "free", "output", "error"] }).notNull(),
		/** Number of the file's part with the outcome. The outcome counts once that part is stored. */
		part: integer(),
		promptTokens: count("prompt_tokens"),
		cachedTokens: count("cached_tokens"),
		completionTokens: count("completion_tokens"),
		reasoningTokens: count("reasoning_tokens"),
		chargedNanoUsd: sum("charged_nano_usd"),
	},
	(table) => [primaryKey({ columns: [table.batchId, table.line] })],
);
