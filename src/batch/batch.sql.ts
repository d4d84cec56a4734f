import { sql } from "drizzle-orm";
import { bigint, index, integer, jsonb, pgTable, primaryKey, text, timestamp, unique, uuid } from "drizzle-orm/pg-core";

const count = (name: string) => integer(name).notNull().default(0);
const sum = (name: string) => bigint(name, { mode: "number" }).notNull().default(0);
const moment = (name: string) => timestamp(name, { withTimezone: true });

/** Batches of accounts. No prompt and no answer is in here: those are in the files, encrypted. */
export const batch = pgTable(
	"batch",
	{
		/** `batch_…`, so sorted by time. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		/** Whose request made it: its lines are charged to this key. */
		keyId: text("key_id").notNull(),
		/** The path that every line names. */
		endpoint: text().notNull(),
		inputFileId: text("input_file_id").notNull(),
		completionWindow: text("completion_window").notNull(),
		metadata: jsonb(),
		/** Seconds that its output files are kept; null for the usual time. */
		outputExpiresS: integer("output_expires_s"),
		/** What a client that repeats itself says about it. */
		idempotencyKey: text("idempotency_key"),
		state: text({
			enum: ["validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"],
		}).notNull(),
		/** How it will end, once that is decided. */
		ending: text({ enum: ["completed", "expired", "cancelled", "failed"] }),
		/** Grows with each run; what an earlier one says does not count any more. */
		run: integer().notNull().default(0),
		/** The model's id; null until the input was read. */
		model: text(),
		/** Why it does not go on at the moment: `{code, message, sinceMs}`. */
		paused: jsonb(),
		/** What is wrong with its input, or why it was stopped: `[{code, message, param, line}]`. */
		errors: jsonb(),
		total: count("total"),
		completed: count("completed"),
		failed: count("failed"),
		promptTokens: sum("prompt_tokens"),
		cachedTokens: sum("cached_tokens"),
		completionTokens: sum("completion_tokens"),
		reasoningTokens: sum("reasoning_tokens"),
		chargedNanoUsd: sum("charged_nano_usd"),
		/** The files that it writes; shown once they are whole. */
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
		/** For those that are not over. */
		index("batch_open")
			.on(table.id)
			.where(sql`${table.state} in ('validating', 'in_progress', 'finalizing', 'cancelling')`),
		unique("batch_idempotency").on(table.keyId, table.idempotencyKey),
	],
);

/** Requests of lines whose run died before their outcome was kept: the line is sent again, and their charge is credited. */
export const batchLostRequest = pgTable("batch_lost_request", {
	requestId: uuid("request_id").primaryKey(),
	batchId: text("batch_id").notNull(),
	accountId: text("account_id").notNull(),
	lostAt: moment("lost_at").notNull().defaultNow(),
});

/**
 * Lines of batches that are not over: a row is written before a line is sent, and says then which part of which file has
 * its outcome. A line that has a row is never sent by anybody else; rows go when the batch is over.
 */
export const batchLine = pgTable(
	"batch_line",
	{
		batchId: text("batch_id").notNull(),
		/** Of the input file, 1 the first. */
		line: integer().notNull(),
		/** The request that carries it. */
		requestId: uuid("request_id").notNull(),
		/** `free`: given back unsent or uncharged, and may be sent again. `output`, `error`: see `part`. */
		state: text({ enum: ["claimed", "free", "output", "error"] }).notNull(),
		/** The part of that file which has its outcome; it counts once the part is sealed. */
		part: integer(),
		promptTokens: count("prompt_tokens"),
		cachedTokens: count("cached_tokens"),
		completionTokens: count("completion_tokens"),
		reasoningTokens: count("reasoning_tokens"),
		chargedNanoUsd: sum("charged_nano_usd"),
	},
	(table) => [primaryKey({ columns: [table.batchId, table.line] })],
);
