import { bigserial, index, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Accounts whose credit or usage changed since they were last looked at. Triggers write it, if the account wants to hear.
 * Not one row an account: who writes one would wait for who deletes it, and credit is booked by those who write.
 */
export const alertTouched = pgTable(
	"alert_touched",
	{
		id: bigserial({ mode: "bigint" }).primaryKey(),
		accountId: text("account_id").notNull(),
	},
	(table) => [index("alert_touched_account").on(table.accountId)],
);

/** What was told once and is not told again: the crossing of a line, a key's end. */
export const alertMark = pgTable(
	"alert_mark",
	{
		accountId: text("account_id").notNull(),
		/** `cap:<budget>:80:<cap>`, `expires:<key>:<moment>`, `topup:<id>`, `unusual:<day>`. */
		mark: text().notNull(),
		at: timestamp({ withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [
		primaryKey({ columns: [table.accountId, table.mark] }),
		/** For those that are forgotten. */
		index("alert_mark_at").on(table.at),
	],
);
