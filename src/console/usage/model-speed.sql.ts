import { bigint, pgTable, primaryKey, smallint, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Speeds of models: counts of completed streams by hour and logarithmic bucket. `usage_fold` adds to the counts;
 * `usage_roll` sums rows older than two days per day and deletes them after 400 days.
 */
export const modelSpeed = pgTable(
	"model_speed",
	{
		hour: timestamp({ withTimezone: true }).notNull(),
		model: text().notNull(),
		/** `first_token`: milliseconds to the first token. `rate`: tokens per second afterwards (16 tokens or more). */
		kind: text({ enum: ["first_token", "rate"] }).notNull(),
		/** ⌊20 × log₁₀(value)⌋: each bucket's upper bound is 12 % above its lower bound. */
		bucket: smallint().notNull(),
		requests: bigint({ mode: "number" }).notNull(),
	},
	(table) => [primaryKey({ columns: [table.hour, table.model, table.kind, table.bucket] })],
);
