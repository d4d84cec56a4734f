import { bigint, date, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { account } from "../../keys/keys.sql.ts";

export const billingDetails = pgTable("billing_details", {
	accountId: text("account_id")
		.primaryKey()
		.references(() => account.id),
	company: text().notNull(),
	address: text().notNull(),
	vatId: text("vat_id").notNull(),
	updatedAt: timestamp("updated_at", { withTimezone: true }).notNull().defaultNow(),
});

/**
 * Sums of an account's closed month (UTC). Written once, when all days of the month are sealed. Usage that arrives
 * later is charged in a later month's statement.
 */
export const closedMonth = pgTable(
	"closed_month",
	{
		accountId: text("account_id")
			.notNull()
			.references(() => account.id),
		month: date({ mode: "string" }).notNull(),
		usageNanoUsd: bigint("usage_nano_usd", { mode: "bigint" }).notNull(),
		/** Usage of all requests admitted before the month's end, in this and earlier months. */
		usageToDateNanoUsd: bigint("usage_to_date_nano_usd", { mode: "bigint" }).notNull(),
		closingNanoUsd: bigint("closing_nano_usd", { mode: "bigint" }).notNull(),
		closedAt: timestamp("closed_at", { withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.accountId, table.month] })],
);

/** Double-entry journal of a closed month (UTC) of all accounts, written once from their statements. */
export const journalMonth = pgTable("journal_month", {
	month: date({ mode: "string" }).primaryKey(),
	/** Liabilities at the month's end: unused credit that was paid for, and unused promotional credit. */
	deferredNanoUsd: bigint("deferred_nano_usd", { mode: "bigint" }).notNull(),
	promotionalNanoUsd: bigint("promotional_nano_usd", { mode: "bigint" }).notNull(),
	entries: jsonb().$type<readonly object[]>().notNull(),
	closedAt: timestamp("closed_at", { withTimezone: true }).notNull().defaultNow(),
});
