import { bigint, pgTable, primaryKey, smallint, text, timestamp } from "drizzle-orm/pg-core";

/**
 * How fast models were of late: streamed answers that were finished, counted by hour and size. `usage_fold` adds them with
 * the sums by hour, and removes what is older than two days.
 */
export const modelSpeed = pgTable(
	"model_speed",
	{
		hour: timestamp({ withTimezone: true }).notNull(),
		model: text().notNull(),
		/** first_token: milliseconds to it. rate: tokens a second behind it, of answers with 16 tokens and more. */
		kind: text({ enum: ["first_token", "rate"] }).notNull(),
		/** ⌊20 × log₁₀ of it⌋: each is 12 % wide. */
		bucket: smallint().notNull(),
		requests: bigint({ mode: "number" }).notNull(),
	},
	(table) => [primaryKey({ columns: [table.hour, table.model, table.kind, table.bucket] })],
);
