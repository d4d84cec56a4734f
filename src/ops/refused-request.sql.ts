import { sql } from "drizzle-orm";
import { bigint, index, integer, pgTable, text, timestamp, uuid } from "drizzle-orm/pg-core";

/**
 * Requests of known keys refused before admission, with nothing reserved. For people to read, never an authority; kept
 * for a month, without any part of a prompt.
 */
export const refusedRequest = pgTable(
	"refused_request",
	{
		requestId: uuid("request_id").primaryKey(),
		accountId: text("account_id").notNull(),
		keyId: text("key_id").notNull(),
		/** The project that the key belonged to; null for none. */
		projectId: text("project_id"),
		/** As requested, shortened; null where the request was refused before its model was read. */
		model: text(),
		/** As in `usage_event`. */
		endpoint: text().notNull(),
		/** The error's code, as `insufficient_quota`. */
		code: text().notNull(),
		status: integer().notNull(),
		message: text().notNull(),
		param: text(),
		/** Available and needed amounts, where credit or a cap did not suffice; else null. */
		availableNanoUsd: bigint("available_nano_usd", { mode: "number" }),
		heldNanoUsd: bigint("held_nano_usd", { mode: "number" }),
		requiredNanoUsd: bigint("required_nano_usd", { mode: "number" }),
		/** The `max_tokens` that would have fitted. */
		affordableTokens: integer("affordable_tokens"),
		refusedAt: timestamp("refused_at", { withTimezone: true }).notNull(),
		/** Further refusals of the same key with the same code in the same minute, which got no row of their own. */
		repeats: integer().notNull().default(0),
		/** The last of them. */
		repeatedAt: timestamp("repeated_at", { withTimezone: true }),
	},
	(table) => [
		index("refused_request_account").on(table.accountId, table.refusedAt, table.requestId),
		index("refused_request_key").on(table.keyId, table.refusedAt, table.requestId),
		index("refused_request_model").on(table.accountId, table.model, table.refusedAt, table.requestId),
		index("refused_request_project")
			.on(table.projectId, table.refusedAt, table.requestId)
			.where(sql`${table.projectId} is not null`),
		/** For the removal of old rows. */
		index("refused_request_refused").on(table.refusedAt),
	],
);
