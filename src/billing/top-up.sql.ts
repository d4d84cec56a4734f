import { sql } from "drizzle-orm";
import { bigint, index, pgTable, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";

/** A top-up, which is credited once its payment is verified. */
export const topUp = pgTable(
	"top_up",
	{
		/** Id of the top-up: `top_…`. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		amountNanoUsd: bigint("amount_nano_usd", { mode: "number" }).notNull(),
		method: text({ enum: ["transfer", "card", "demo"] }).notNull(),
		/** Reference of the payer or the payment service. Unique, so that one payment is credited once. */
		reference: text().notNull().unique(),
		state: text({ enum: ["pending", "confirmed", "rejected", "refunded", "disputed"] })
			.notNull()
			.default("pending"),
		createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
		decidedAt: timestamp("decided_at", { withTimezone: true }),
		decidedBy: text("decided_by"),
	},
	(table) => [
		index("top_up_account").on(table.accountId, table.createdAt),
		/** Index that finds pending top-ups. */
		index("top_up_state").on(table.state, table.id),
		/** Index for the checks of the ledger's invariants. */
		index("top_up_booked").on(table.decidedAt).where(sql`${table.state} in ('confirmed', 'refunded', 'disputed')`),
		/** Equal references must not differ only in case or blanks. */
		uniqueIndex("top_up_same_reference").on(sql`upper(regexp_replace(${table.reference}, '[[:space:]]', '', 'g'))`),
	],
);

/** Bank transfers that operators have seen on the bank statement. */
export const topUpCheck = pgTable(
	"top_up_check",
	{
		topUpId: text("top_up_id").primaryKey(),
		/** The bank's number of the transaction. Unique, because a transaction pays one top-up. */
		transactionReference: text("transaction_reference").notNull().unique(),
		firstBy: text("first_by").notNull(),
		firstAt: timestamp("first_at", { withTimezone: true }).notNull().defaultNow(),
		/** The second operator, who confirmed a large amount. */
		secondBy: text("second_by"),
		secondAt: timestamp("second_at", { withTimezone: true }),
	},
	(table) => [
		/** Equal numbers must not differ only in case, or in signs between letters and digits. */
		uniqueIndex("top_up_check_transaction").on(
			sql`upper(regexp_replace(${table.transactionReference}, '[^A-Za-z0-9]', '', 'g'))`,
		),
	],
);
