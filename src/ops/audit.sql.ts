import { index, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Audit events: one row for every act of an operator, on a key, or of a payment service. Append-only, except for an
 * act's outcome.
 */
export const auditEvent = pgTable(
	"audit_event",
	{
		/** `aud_…`, so sorted by time. */
		id: text().primaryKey(),
		at: timestamp({ withTimezone: true }).notNull().defaultNow(),
		/** A user's id, or `stripe`. */
		actor: text().notNull(),
		action: text().notNull(),
		/** The id of the key, account, top-up or payment. */
		subject: text().notNull(),
		accountId: text("account_id"),
		ip: text(),
		/** Never a secret. */
		detail: jsonb().$type<Record<string, unknown>>().notNull(),
	},
	(table) => [
		index("audit_event_subject").on(table.subject, table.id),
		index("audit_event_account").on(table.accountId, table.id),
		index("audit_event_actor").on(table.actor, table.id),
	],
);
