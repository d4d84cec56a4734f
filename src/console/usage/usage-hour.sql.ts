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
	/** `ok`: the answer was complete. `left`: the client disconnected. `failed`: any other ending. */
	class: text({ enum: ["ok", "failed", "left"] }).notNull(),
	...sums(),
});

/** Usage summed by hour of admission. `usage_fold` adds each row of `usage_event` once. */
export const usageHour = pgTable("usage_hour", hourOf(), (table) => [
	primaryKey({ columns: [table.accountId, table.hour, table.keyId, table.model, table.class] }),
	index("usage_hour_hour").on(table.hour),
	index("usage_hour_model").on(table.accountId, table.model, table.class, table.hour),
	index("usage_hour_key").on(table.keyId, table.model, table.class, table.hour),
]);

/**
 * Part of `usage_hour` that belongs to projects, by the key's project at admission; the remainder of an hour had no
 * project (`usage_split` subtracts). A separate table, so that accounts without projects have no rows here.
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
 * Sum of all hours of an account, so that a running balance need not read them. Triggers of `usage_hour` maintain it.
 */
export const usageTotal = pgTable(
	"usage_total",
	{
		accountId: text("account_id").primaryKey(),
		chargedNanoUsd: count("charged_nano_usd"),
		lastHour: timestamp("last_hour", { withTimezone: true }),
	},
	(table) => [index("usage_total_last").on(table.lastHour)],
);

/**
 * The service's usage by hour, and by day once it is older than 40 days (`usage_roll`). The number of rows that
 * operators' pages read does not grow with accounts or requests.
 */
export const serviceHour = pgTable(
	"service_hour",
	{
		hour: hour(),
		model: text().notNull(),
		/** The ending of settled requests; the error code of refused ones. */
		code: text().notNull(),
		...sums(),
		/** Operator's cost of the tokens, at the rate of the time when they were summed. */
		costPicoUsd: numeric("cost_pico_usd").notNull().default("0"),
	},
	(table) => [primaryKey({ columns: [table.hour, table.model, table.code] })],
);

/** Operator's cost per token of each model, copied from the current `tollgate.yaml`. */
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
		/** Seconds for which the replica was in the catalogue. */
		seconds: doublePrecision().notNull(),
		/** Requests in progress and capacity, each multiplied by its seconds; divided by `seconds`: the average. */
		usedSeconds: doublePrecision("used_seconds").notNull(),
		placeSeconds: doublePrecision("place_seconds").notNull(),
		costNanoUsd: doublePrecision("cost_nano_usd").notNull(),
		sampledAt: timestamp("sampled_at", { withTimezone: true }).notNull(),
	},
	(table) => [primaryKey({ columns: [table.hour, table.model, table.replica] })],
);

/** Position in `usage_event` up to which `usage_hour` is complete; one row. */
export const usageCursor = pgTable("usage_cursor", {
	id: smallint().primaryKey(),
	/** At the last call of `usage_fold` every transaction with a lower number had ended; null before the first call. */
	horizon: bigint({ mode: "number" }),
	/** At the last call of `usage_fold` no transaction had this or a higher number yet. */
	newest: bigint({ mode: "number" }),
	/**
	 * Time up to which the sums are complete: the last call of `usage_fold`, or a minute after the start of the oldest
	 * transaction then in progress.
	 */
	foldedAt: timestamp("folded_at", { withTimezone: true }),
});
