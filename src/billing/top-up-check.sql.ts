import { sql } from "drizzle-orm";
import { pgTable, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";

/** Bank transfers that operators found. */
export const topUpCheck = pgTable(
	"top_up_check",
	{
		topUpId: text("top_up_id").primaryKey(),
		/** The bank's transaction number: one transaction pays one top-up. */
		transactionReference: text("transaction_reference").notNull().unique(),
		firstBy: text("first_by").notNull(),
		firstAt: timestamp("first_at", { withTimezone: true }).notNull().defaultNow(),
		/** The second operator, for large amounts. */
		secondBy: text("second_by"),
		secondAt: timestamp("second_at", { withTimezone: true }),
	},
	(table) => [
		/** Case and signs between letters and digits are ignored. */
		uniqueIndex("top_up_check_transaction").on(
			sql`upper(regexp_replace(${table.transactionReference}, '[^A-Za-z0-9]', '', 'g'))`,
		),
	],
);
