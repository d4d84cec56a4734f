import { sql } from "drizzle-orm";
import { bigint, index, integer, pgTable, text, timestamp, uuid } from "drizzle-orm/pg-core";

/**
 * Requests with known keys that were refused before admission. For people to read; no decision depends on them. Kept
 * for a month, without any part of a prompt.
 */
export const refusedRequest = pgTable(
	"refused_request",
	{
		requestId: uuid("request_id").primaryKey(),
		accountId: text("account_id").notNull(),
		keyId: text("key_id").notNull(),
		/** Project of the key at that time; null: none. */
		projectId: text("project_id"),
		/** Model named in the request, shortened; null if the request was refused before its model was read. */
		model: text(),
		/** Endpoint, as in `usage_event`. */
		endpoint: text().notNull(),
		/** Error code, such as `insufficient_quota`. */
		code: text().notNull(),
		status: integer().notNull(),
		message: text().notNull(),
		param: text(),
		/** Available, held and required amounts if credit or a cap was too low; otherwise null. */
		availableNanoUsd: bigint("available_nano_usd", { mode: "number" }),
		heldNanoUsd: bigint("held_nano_usd", { mode: "number" }),
		requiredNanoUsd: bigint("required_nano_usd", { mode: "number" }),
		/** Largest `max_tokens` for which the available amount would have been enough. */
		affordableTokens: integer("affordable_tokens"),
		refusedAt: timestamp("refused_at", { withTimezone: true }).notNull(),
		/** Further refusals of the same account with the same code in this minute, which have no own rows. */
		repeats: integer().notNull().default(0),
		/** Time of the last refusal counted in `repeats`. */
		repeatedAt: timestamp("repeated_at", { withTimezone: true }),
	},
	(table) => [
		index("refused_request_account").on(table.accountId, table.refusedAt, table.requestId),
		index("refused_request_key").on(table.keyId, table.refusedAt, table.requestId),
		index("refused_request_model").on(table.accountId, table.model, table.refusedAt, table.requestId),
		index("refused_request_project")
			.on(table.projectId, table.refusedAt, table.requestId)
			.where(sql`${table.projectId} is not null`),
		/** Index for deleting old rows. An expression, so that reads of one account cannot use it. */
		index("refused_request_refused").on(sql`(${table.refusedAt} at time zone 'UTC')`),
	],
);
