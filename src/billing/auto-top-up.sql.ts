import { sql } from "drizzle-orm";
import { bigint, bigserial, index, integer, pgTable, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";

const moment = (name: string) => timestamp(name, { withTimezone: true });
const nano = (name: string) => bigint(name, { mode: "number" }).notNull();

/** The account's card for automatic top-ups, as Stripe's ids. No card number is stored. */
export const savedCard = pgTable("saved_card", {
	accountId: text("account_id").primaryKey(),
	/** `cus_…` */
	customerId: text("customer_id").notNull(),
	/** `pm_…`; null while there is none. */
	paymentMethodId: text("payment_method_id"),
	brand: text(),
	lastFour: text("last_four"),
	expMonth: integer("exp_month"),
	expYear: integer("exp_year"),
	savedAt: moment("saved_at"),
});

/** A Stripe page on which a card is given and read from afterwards; or a card that Stripe is to delete. */
export const cardSetup = pgTable(
	"card_setup",
	{
		/** `cs_…`, or `pm_…` of a card. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		/**
		 * card: a card only. payment: the payment of an attempt that its owner must confirm. gone: a card that was removed
		 * or replaced.
		 */
		kind: text({ enum: ["card", "payment", "gone"] }).notNull(),
		state: text({ enum: ["open", "done", "closed"] })
			.notNull()
			.default("open"),
		createdAt: moment("created_at").notNull().defaultNow(),
		lookAt: moment("look_at").notNull(),
	},
	(table) => [
		index("card_setup_look").on(table.lookAt).where(sql`${table.state} = 'open'`),
		index("card_setup_account").on(table.accountId).where(sql`${table.state} = 'open'`),
	],
);

/** Automatic top-up: threshold, amount, monthly limit. No row: switched off. */
export const autoTopUp = pgTable(
	"auto_top_up",
	{
		accountId: text("account_id").primaryKey(),
		belowNanoUsd: nano("below_nano_usd"),
		amountNanoUsd: nano("amount_nano_usd"),
		/** Per calendar month of the account's time zone; begun attempts count. */
		monthMostNanoUsd: nano("month_most_nano_usd"),
		/** stopped: until it is saved again. needs_owner: until the pending payment is confirmed or cancelled. */
		state: text({ enum: ["on", "stopped", "needs_owner"] }).notNull(),
		/** Reason for the state; see `stop-reasons.ts`. */
		reason: text(),
		changedAt: moment("changed_at").notNull().defaultNow(),
		/** When it is checked again without a change of credit, since the obstacle may be over. */
		lookAt: moment("look_at"),
		/** The notice that is still to be sent. */
		tell: text(),
	},
	(table) => [
		index("auto_top_up_look").on(table.lookAt).where(sql`${table.state} = 'on' and ${table.lookAt} is not null`),
		index("auto_top_up_tell").on(table.changedAt).where(sql`${table.tell} is not null`),
	],
);

/** Accounts with automatic top-ups whose credit changed since the last check. Written by triggers. */
export const autoTopUpTouched = pgTable("auto_top_up_touched", {
	id: bigserial({ mode: "number" }).primaryKey(),
	accountId: text("account_id").notNull(),
});

/** One automatic top-up. An open one blocks the next. */
export const autoTopUpAttempt = pgTable(
	"auto_top_up_attempt",
	{
		/** `att_…`: Stripe's Idempotency-Key. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		topUpId: text("top_up_id").notNull().unique(),
		/** Of the payment as first requested; a repetition requests the same. */
		amountNanoUsd: nano("amount_nano_usd"),
		customerId: text("customer_id").notNull(),
		paymentMethodId: text("payment_method_id").notNull(),
		/** unknown: sent, and no answer tells the outcome. ended: nothing was charged and nothing can be. */
		state: text({
			enum: ["begun", "sent", "unknown", "needs_authentication", "succeeded", "declined", "ended"],
		}).notNull(),
		reason: text(),
		/** `pi_…`, once known. */
		paymentId: text("payment_id"),
		begunAt: moment("begun_at").notNull().defaultNow(),
		/** The month that it counts in, by the account's zone at that time: `2027-01`. */
		month: text().notNull(),
		sentAt: moment("sent_at"),
		endedAt: moment("ended_at"),
		/** When any console looks at it next. */
		lookAt: moment("look_at").notNull().defaultNow(),
		looks: integer().notNull().default(0),
	},
	(table) => [
		uniqueIndex("auto_top_up_attempt_open").on(table.accountId).where(isOpen(table)),
		index("auto_top_up_attempt_look").on(table.lookAt).where(isOpen(table)),
		index("auto_top_up_attempt_account").on(table.accountId, table.begunAt),
	],
);

function isOpen({ state }: { state: unknown }) {
	return sql`${state} in ('begun', 'sent', 'unknown', 'needs_authentication')`;
}
