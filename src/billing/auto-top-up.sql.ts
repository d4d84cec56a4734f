import { sql } from "drizzle-orm";
import { bigint, bigserial, index, integer, pgTable, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";

const moment = (name: string) => timestamp(name, { withTimezone: true });
const nano = (name: string) => bigint(name, { mode: "number" }).notNull();

/** Stripe's ids of the card that pays an account's automatic top-ups. No card number is stored. */
export const savedCard = pgTable("saved_card", {
	accountId: text("account_id").primaryKey(),
	/** Stripe's id of the customer: `cus_…`. */
	customerId: text("customer_id").notNull(),
	/** Stripe's id of the card: `pm_…`; null if the account has none. */
	paymentMethodId: text("payment_method_id"),
	brand: text(),
	lastFour: text("last_four"),
	expMonth: integer("exp_month"),
	expYear: integer("exp_year"),
	savedAt: moment("saved_at"),
});

/** Objects at Stripe that need work: a page on which the customer enters a card or pays, or a card to delete. */
export const cardSetup = pgTable(
	"card_setup",
	{
		/** `cs_…` of a page, or `pm_…` of a card to delete. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		/**
		 * card: a page that saves a card. payment: a page on which an owner confirms an attempt. gone: a removed or
		 * replaced card to delete.
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

/** Settings of automatic top-ups. They are off for accounts without a row. */
export const autoTopUp = pgTable(
	"auto_top_up",
	{
		accountId: text("account_id").primaryKey(),
		belowNanoUsd: nano("below_nano_usd"),
		amountNanoUsd: nano("amount_nano_usd"),
		/** Limit per calendar month in the account's time zone, against which every attempt counts. */
		monthMostNanoUsd: nano("month_most_nano_usd"),
		/** stopped: off until the setting is saved again. needs_owner: off until the payment is confirmed or cancelled. */
		state: text({ enum: ["on", "stopped", "needs_owner"] }).notNull(),
		/** Reason for the state, an id of `stop-reasons.ts`. */
		reason: text(),
		changedAt: moment("changed_at").notNull().defaultNow(),
		/** Time of the next check even without a change of credit, because what prevented a top-up may have ended. */
		lookAt: moment("look_at"),
		/** Kind of the notice that is still to be created; null: none. */
		tell: text(),
	},
	(table) => [
		index("auto_top_up_look").on(table.lookAt).where(sql`${table.state} = 'on' and ${table.lookAt} is not null`),
		index("auto_top_up_tell").on(table.changedAt).where(sql`${table.tell} is not null`),
	],
);

/** Accounts with automatic top-ups whose credit changed since the last check. Triggers insert the rows. */
export const autoTopUpTouched = pgTable("auto_top_up_touched", {
	id: bigserial({ mode: "number" }).primaryKey(),
	accountId: text("account_id").notNull(),
});

/** One automatic top-up. Another one starts only after this one has ended. */
export const autoTopUpAttempt = pgTable(
	"auto_top_up_attempt",
	{
		/** `att_…`. The same text is Stripe's Idempotency-Key. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		topUpId: text("top_up_id").notNull().unique(),
		/** Amount at the first request to Stripe. Repeated requests must have the same amount. */
		amountNanoUsd: nano("amount_nano_usd"),
		customerId: text("customer_id").notNull(),
		paymentMethodId: text("payment_method_id").notNull(),
		/** unknown: sent to Stripe, without a conclusive response. ended: nothing was or will be charged. */
		state: text({
			enum: ["begun", "sent", "unknown", "needs_authentication", "succeeded", "declined", "ended"],
		}).notNull(),
		reason: text(),
		/** `pi_…` at Stripe; null until known. */
		paymentId: text("payment_id"),
		begunAt: moment("begun_at").notNull().defaultNow(),
		/** Month against which the amount counts, such as `2027-01`, in the time zone that the account had at the start. */
		month: text().notNull(),
		sentAt: moment("sent_at"),
		endedAt: moment("ended_at"),
		/** Time after which any console checks the attempt again. */
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
