import { sql } from "drizzle-orm";
import { bigint, bigserial, check, date, index, pgTable, text } from "drizzle-orm/pg-core";

const amount = (name: string) => bigint(name, { mode: "bigint" }).notNull();

/**
 * Promotional credit of accounts: a row for each grant, and for each time that ended credit was taken back. It is used
 * before paid credit. What an account's spending has used follows from the newest row at that spending
 * (`promotion_used`), so a request changes no row.
 */
export const promotion = pgTable(
	"promotion",
	{
		seq: bigserial({ mode: "number" }).primaryKey(),
		accountId: text("account_id").notNull(),
		/** Its adjustment; null if ended credit had all been used. */
		adjustmentId: text("adjustment_id").unique(),
		/** Last day (UTC) on which a grant can be used; null: no end. */
		lastDay: date("last_day", { mode: "string" }),
		/** Unspent part of the grant at the account's newest row; 0 if this row takes credit back. */
		leftNanoUsd: amount("left_nano_usd"),
		/** The account's spending at this row, its promotional credit used up to it, and the unspent rest of all grants. */
		spentNanoUsd: amount("spent_nano_usd"),
		usedNanoUsd: amount("used_nano_usd"),
		restNanoUsd: amount("rest_nano_usd"),
	},
	(table) => [
		index("promotion_account").on(table.accountId, table.spentNanoUsd, table.seq),
		/** Index of the grants with an end, which is read every few seconds. */
		index("promotion_ending").on(table.lastDay).where(sql`${table.leftNanoUsd} > 0`),
		check("promotion_not_negative", sql`${table.leftNanoUsd} >= 0 and ${table.restNanoUsd} >= 0`),
	],
);
