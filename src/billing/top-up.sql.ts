import { sql } from "drizzle-orm";
import { bigint, index, pgTable, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";

/** A top-up. It is credited once its payment is verified. */
export const topUp = pgTable(
	"top_up",
	{
		/** `top_…` */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		amountNanoUsd: bigint("amount_nano_usd", { mode: "number" }).notNull(),
		method: text({ enum: ["transfer", "card", "demo"] }).notNull(),
		/** Reference of the payer or of the payment service. One payment is credited once. */
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
		/** Index of pending top-ups only. */
		index("top_up_state").on(table.state, table.id),
		/** Index for checks of the books. */
		index("top_up_booked").on(table.decidedAt).where(sql`${table.state} in ('confirmed', 'refunded', 'disputed')`),
		/** Unique without case and blanks. */
		uniqueIndex("top_up_same_reference").on(sql`upper(regexp_replace(${table.reference}, '[[:space:]]', '', 'g'))`),
	],
);

/** Bank transfers that operators found on the bank statement. */
export const topUpCheck = pgTable(
	"top_up_check",
	{
		topUpId: text("top_up_id").primaryKey(),
		/** The bank's number of the transaction. Unique, because one transaction pays one top-up. */
		transactionReference: text("transaction_reference").notNull().unique(),
		firstBy: text("first_by").notNull(),
		firstAt: timestamp("first_at", { withTimezone: true }).notNull().defaultNow(),
		/** The second operator, who confirmed a large amount. */
		secondBy: text("second_by"),
		secondAt: timestamp("second_at", { withTimezone: true }),
	},
	(table) => [
		/** Unique without case, and without signs between letters and digits. */
		uniqueIndex("top_up_check_transaction").on(
			sql`upper(regexp_replace(${table.transactionReference}, '[^A-Za-z0-9]', '', 'g'))`,
		),
	],
);
