import { bigserial, index, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Accounts whose credit or usage changed since the last check. Triggers insert rows, several per account: with a unique
 * row, an insert would wait for a running deletion.
 */
export const alertTouched = pgTable(
	"alert_touched",
	{ id: bigserial({ mode: "bigint" }).primaryKey(), accountId: text("account_id").notNull() },
	(table) => [index("alert_touched_account").on(table.accountId)],
);

/** Marks of events that were announced, so that each gives one notice: a crossed threshold, an expiring key. */
export const alertMark = pgTable(
	"alert_mark",
	{
		accountId: text("account_id").notNull(),
		mark: text().notNull(),
		at: timestamp({ withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.accountId, table.mark] }), index("alert_mark_at").on(table.at)],
);
