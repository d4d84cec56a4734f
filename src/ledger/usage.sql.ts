import { sql } from "drizzle-orm";
import { bigint, boolean, check, index, integer, pgTable, real, text, timestamp, uuid } from "drizzle-orm/pg-core";

/** One settled request: the authority on what it cost. Written once, by its id; no prompt or answer is ever stored. */
export const usageEvent = pgTable(
	"usage_event",
	{
		requestId: uuid("request_id").primaryKey(),
		accountId: text("account_id").notNull(),
		keyId: text("key_id").notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		model: text().notNull(),
		rateCardId: text("rate_card_id").notNull(),
		/** `chat`, `completions`, `embeddings`, `transcription`, `image`, `rerank`. */
		endpoint: text().notNull(),
		streamed: boolean().notNull(),
		reservedNanoUsd: bigint("reserved_nano_usd", { mode: "number" }).notNull(),
		chargedNanoUsd: bigint("charged_nano_usd", { mode: "number" }).notNull(),
		/** The part of the actual cost that credit did not cover: the operator's, never the customer's. */
		writtenOffNanoUsd: bigint("written_off_nano_usd", { mode: "number" }).notNull().default(0),
		/** exact: by the upstream's count. estimated: by ours. recovered: from the journal after a crash. */
		basis: text({ enum: ["exact", "estimated", "recovered"] }).notNull(),
		ending: text({
			enum: ["finished", "upstream_failed", "upstream_died", "upstream_silent", "client_left", "shutdown", "crashed"],
		}).notNull(),
		/** HTTP status that the client saw or would have seen. */
		status: integer().notNull(),
		promptTokens: integer("prompt_tokens").notNull().default(0),
		cachedTokens: integer("cached_tokens").notNull().default(0),
		completionTokens: integer("completion_tokens").notNull().default(0),
		reasoningTokens: integer("reasoning_tokens").notNull().default(0),
		/** Audio seconds, images or searches, whichever the endpoint is priced in. */
		units: integer().notNull().default(0),
		/** Alias of the replica that served it, never its address. */
		replica: text(),
		/** The managed batch that it is a line of; null for every other request. */
		batchId: text("batch_id"),
		/** Budgets that it drew on beside its account's and its key's; null for none. */
		budgets: text().array(),
		/** The project that its key belonged to when it was admitted; null for none. */
		projectId: text("project_id"),
		admittedAt: timestamp("admitted_at", { withTimezone: true }).notNull(),
		firstTokenMs: real("first_token_ms"),
		durationMs: real("duration_ms").notNull().default(0),
		settledAt: timestamp("settled_at", { withTimezone: true }).notNull().default(sql`books_now()`),
	},
	(table) => [
		index("usage_event_account").on(table.accountId, table.admittedAt),
		index("usage_event_key").on(table.keyId, table.admittedAt),
		/** For the sums that pages are made of: they take in what was settled lately. */
		index("usage_event_settled").on(table.settledAt),
		/** Lines of a batch, among a day of other requests. */
		index("usage_event_batch")
			.on(table.batchId, table.admittedAt, table.requestId)
			.where(sql`${table.batchId} is not null`),
		/** A project's requests, among those of its account. */
		index("usage_event_project")
			.on(table.projectId, table.admittedAt, table.requestId)
			.where(sql`${table.projectId} is not null`),
		check(
			"usage_charged_within_reserved",
			sql`${table.chargedNanoUsd} >= 0 and ${table.reservedNanoUsd} >= ${table.chargedNanoUsd}`,
		),
	],
);

/** Requests that were still running at the last flush: what is held, and for what. Never the authority on money. */
export const reservation = pgTable(
	"reservation",
	{
		requestId: uuid("request_id").primaryKey(),
		accountId: text("account_id").notNull(),
		keyId: text("key_id").notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		model: text().notNull(),
		reservedNanoUsd: bigint("reserved_nano_usd", { mode: "number" }).notNull(),
		admittedAt: timestamp("admitted_at", { withTimezone: true }).notNull(),
		/** As in `usage_event`: its key may have been moved since. */
		projectId: text("project_id"),
	},
	(table) => [
		index("reservation_account").on(table.accountId),
		index("reservation_instance").on(table.instanceId, table.epoch),
	],
);
