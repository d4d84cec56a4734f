import { bigserial, index, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Accounts whose credit or usage changed since the last check of alerts. Database triggers insert the rows, several per
 * account: with one row per account, an insert would wait for a deletion in progress.
 */
export const alertTouched = pgTable(
	"alert_touched",
	{ id: bigserial({ mode: "bigint" }).primaryKey(), accountId: text("account_id").notNull() },
	(table) => [index("alert_touched_account").on(table.accountId)],
);

/** Announced events, such as a crossed threshold: a row prevents a second notice of the same event. */
export const alertMark = pgTable(
	"alert_mark",
	{
		accountId: text("account_id").notNull(),
		mark: text().notNull(),
		at: timestamp({ withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.accountId, table.mark] }), index("alert_mark_at").on(table.at)],
);
