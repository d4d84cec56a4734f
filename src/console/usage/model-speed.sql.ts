import { bigint, pgTable, primaryKey, smallint, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Recent speeds of models: completed streamed answers, counted by hour and size. `usage_fold` adds them with the hourly
 * sums, and removes rows older than two days.
 */
export const modelSpeed = pgTable(
	"model_speed",
	{
		hour: timestamp({ withTimezone: true }).notNull(),
		model: text().notNull(),
		/**
		 * first_token: milliseconds to the first token. rate: tokens a second after it, of answers with 16 tokens and more.
		 */
		kind: text({ enum: ["first_token", "rate"] }).notNull(),
		/** ⌊20 × log₁₀ of the value⌋: each bucket is 12 % wide. */
		bucket: smallint().notNull(),
		requests: bigint({ mode: "number" }).notNull(),
	},
	(table) => [primaryKey({ columns: [table.hour, table.model, table.kind, table.bucket] })],
);
