import { bigint, date, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { account } from "../../keys/account.sql.ts";

/** Who receipts and statements of an account are made out to. */
export const billingDetails = pgTable("billing_details", {
	accountId: text("account_id")
		.primaryKey()
		.references(() => account.id),
	company: text().notNull(),
	/** In lines. */
	address: text().notNull(),
	vatId: text("vat_id").notNull(),
	updatedAt: timestamp("updated_at", { withTimezone: true }).notNull().defaultNow(),
});

/**
 * What an account's month (UTC) came to, written once, when its days are sealed: what is recorded of it later stands in the
 * statement of a later month.
 */
export const closedMonth = pgTable(
	"closed_month",
	{
		accountId: text("account_id")
			.notNull()
			.references(() => account.id),
		/** Its first day. */
		month: date({ mode: "string" }).notNull(),
		/** Of requests that were admitted in it. */
		usageNanoUsd: bigint("usage_nano_usd", { mode: "bigint" }).notNull(),
		/** Of all requests that were admitted before its end. */
		usageToDateNanoUsd: bigint("usage_to_date_nano_usd", { mode: "bigint" }).notNull(),
		closingNanoUsd: bigint("closing_nano_usd", { mode: "bigint" }).notNull(),
		closedAt: timestamp("closed_at", { withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.accountId, table.month] })],
);
