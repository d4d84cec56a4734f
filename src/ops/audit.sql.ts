import { index, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Audit log: a row per action of an operator, on a key, or by Stripe. Append-only, but an action's outcome is added to
 * its row later.
 */
export const auditEvent = pgTable(
	"audit_event",
	{
		/** `aud_…`, sortable by time. */
		id: text().primaryKey(),
		at: timestamp({ withTimezone: true }).notNull().defaultNow(),
		/** Id of the acting user, or `stripe`. */
		actor: text().notNull(),
		action: text().notNull(),
		/** Id of the key, account, top-up or payment that the action concerns. */
		subject: text().notNull(),
		accountId: text("account_id"),
		ip: text(),
		/** Details of the action; never a secret. */
		detail: jsonb().$type<Record<string, unknown>>().notNull(),
	},
	(table) => [
		index("audit_event_subject").on(table.subject, table.id),
		index("audit_event_account").on(table.accountId, table.id),
		index("audit_event_actor").on(table.actor, table.id),
	],
);
