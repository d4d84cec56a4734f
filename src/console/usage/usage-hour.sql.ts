import {
	bigint,
	doublePrecision,
	index,
	numeric,
	pgTable,
	primaryKey,
	smallint,
	text,
	timestamp,
} from "drizzle-orm/pg-core";

const count = (name: string) => bigint(name, { mode: "number" }).notNull();

const hour = () => timestamp({ withTimezone: true }).notNull();
const sums = () => ({
	requests: count("requests"),
	promptTokens: count("prompt_tokens"),
	cachedTokens: count("cached_tokens"),
	completionTokens: count("completion_tokens"),
	reasoningTokens: count("reasoning_tokens"),
	chargedNanoUsd: count("charged_nano_usd"),
	writtenOffNanoUsd: count("written_off_nano_usd"),
	durationMs: doublePrecision("duration_ms").notNull(),
	firstTokenMs: doublePrecision("first_token_ms").notNull(),
	firstTokens: count("first_tokens"),
});
const hourOf = () => ({
	accountId: text("account_id").notNull(),
	hour: hour(),
	keyId: text("key_id").notNull(),
	model: text().notNull(),
	/** ok: the answer was complete. left: the client disconnected. failed: any other end. */
	class: text({ enum: ["ok", "failed", "left"] }).notNull(),
	...sums(),
});

/** Usage summed by the hour of admission. `usage_fold` keeps it up to date from `usage_event`, each row once. */
export const usageHour = pgTable("usage_hour", hourOf(), (table) => [
	primaryKey({ columns: [table.accountId, table.hour, table.keyId, table.model, table.class] }),
	index("usage_hour_hour").on(table.hour),
	index("usage_hour_model").on(table.accountId, table.model, table.class, table.hour),
	index("usage_hour_key").on(table.keyId, table.model, table.class, table.hour),
]);

/**
 * The part of `usage_hour` that belongs to projects, by the key's project at admission. The rest of an hour had no
 * project (`usage_split`). A separate table, so that accounts without projects have no rows here.
 */
export const usageProjectHour = pgTable(
	"usage_project_hour",
	{ ...hourOf(), projectId: text("project_id").notNull() },
	(table) => [
		primaryKey({
			name: "usage_project_hour_pk",
			columns: [table.accountId, table.hour, table.projectId, table.keyId, table.model, table.class],
		}),
		index("usage_project_hour_model").on(table.projectId, table.model, table.class, table.hour),
		index("usage_project_hour_key").on(table.keyId, table.projectId, table.model, table.class, table.hour),
	],
);

/**
 * Sum of an account's hours, so that a running balance need not read them all. Triggers of `usage_hour` maintain it.
 */
export const usageTotal = pgTable(
	"usage_total",
	{
		accountId: text("account_id").primaryKey(),
		chargedNanoUsd: count("charged_nano_usd"),
		/** The last hour with usage. */
		lastHour: timestamp("last_hour", { withTimezone: true }),
	},
	(table) => [index("usage_total_last").on(table.lastHour)],
);

/**
 * The service's usage by hour, and by day once it is older than 40 days (`usage_roll`), so that operators' pages read
 * the same number of rows however many accounts and requests there are.
 */
export const serviceHour = pgTable(
	"service_hour",
	{
		hour: hour(),
		/** Empty: refused before admission. */
		model: text().notNull(),
		/** Ending of settled requests; error code of refused ones. */
		code: text().notNull(),
		...sums(),
		/** What the tokens cost the operator, at the cost per token when they were summed. */
		costPicoUsd: numeric("cost_pico_usd").notNull().default("0"),
	},
	(table) => [primaryKey({ columns: [table.hour, table.model, table.code] })],
);

/** The operator's cost of a model's tokens, as `tollgate.yaml` has it now. */
export const modelCost = pgTable("model_cost", {
	model: text().primaryKey(),
	inputPicoUsd: count("input_pico_usd"),
	outputPicoUsd: count("output_pico_usd"),
});

/** Load and cost of a replica by hour, then by day, like `service_hour`. `service_sample` adds to it each minute. */
export const replicaHour = pgTable(
	"replica_hour",
	{
		hour: hour(),
		model: text().notNull(),
		replica: text().notNull(),
		/** Time for which the replica was in the catalogue. */
		seconds: doublePrecision().notNull(),
		/** Places in use and all places, each multiplied by their time. */
		usedSeconds: doublePrecision("used_seconds").notNull(),
		placeSeconds: doublePrecision("place_seconds").notNull(),
		costNanoUsd: doublePrecision("cost_nano_usd").notNull(),
		sampledAt: timestamp("sampled_at", { withTimezone: true }).notNull(),
	},
	(table) => [primaryKey({ columns: [table.hour, table.model, table.replica] })],
);

/** Up to where `usage_hour` contains `usage_event`; one row. */
export const usageCursor = pgTable("usage_cursor", {
	id: smallint().primaryKey(),
	/** At the last call of `usage_fold` all transactions with lower numbers had ended; null before the first call. */
	horizon: bigint({ mode: "number" }),
	/** At the last call of `usage_fold` no transaction had this number yet. */
	newest: bigint({ mode: "number" }),
	/**
	 * Time up to which the sums are complete: that of the last call of `usage_fold`, or a minute after the start of the
	 * oldest transaction that ran then.
	 */
	foldedAt: timestamp("folded_at", { withTimezone: true }),
});
