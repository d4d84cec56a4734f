import { sql } from "drizzle-orm";
import { bigint, bigserial, check, date, index, pgTable, text } from "drizzle-orm/pg-core";

const amount = (name: string) => bigint(name, { mode: "bigint" }).notNull();

/**
 * Promotional credit of accounts: a row for each grant, and for each time that expired credit was taken back. It is
 * used before paid credit. How much an account's spending has used follows from the newest row at that spending
 * (`promotion_used`), so a request changes no row.
 */
export const promotion = pgTable(
	"promotion",
	{
		seq: bigserial({ mode: "number" }).primaryKey(),
		accountId: text("account_id").notNull(),
		/** The adjustment that gave or took the credit; null if a grant expired when all of it was used. */
		adjustmentId: text("adjustment_id").unique(),
		/** Last day (UTC) on which a grant can be spent; null: it does not expire. */
		lastDay: date("last_day", { mode: "string" }),
		/** Unspent part of the grant as of the account's newest row; 0 for a row that takes credit back. */
		leftNanoUsd: amount("left_nano_usd"),
		/** As of this row: the account's spending, its used promotional credit, and the unspent rest of all its grants. */
		spentNanoUsd: amount("spent_nano_usd"),
		usedNanoUsd: amount("used_nano_usd"),
		restNanoUsd: amount("rest_nano_usd"),
	},
	(table) => [
		index("promotion_account").on(table.accountId, table.spentNanoUsd, table.seq),
		/** Index of the grants that expire, which are read every few seconds. */
		index("promotion_ending").on(table.lastDay).where(sql`${table.leftNanoUsd} > 0`),
		check("promotion_not_negative", sql`${table.leftNanoUsd} >= 0 and ${table.restNanoUsd} >= 0`),
	],
);
