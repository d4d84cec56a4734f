import { sql } from "drizzle-orm";
import { bigint, bigserial, index, integer, pgTable, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";

const moment = (name: string) => timestamp(name, { withTimezone: true });
const nano = (name: string) => bigint(name, { mode: "number" }).notNull();

/** The card of an account that may be charged while nobody is there, as Stripe knows it. No number of it is here. */
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

/** A page of Stripe's on which somebody gives a card; once he has, it is read from there. Or a card that Stripe is to forget. */
export const cardSetup = pgTable(
	"card_setup",
	{
		/** `cs_…`, or `pm_…` of a card. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		/** card: a card alone. payment: the payment of an attempt that wanted its owner. gone: a card that was removed or replaced. */
		kind: text({ enum: ["card", "payment", "gone"] }).notNull(),
		state: text({ enum: ["open", "done", "closed"] })
			.notNull()
			.default("open"),
		createdAt: moment("created_at").notNull().defaultNow(),
		/** When Stripe is asked next. */
		lookAt: moment("look_at").notNull(),
	},
	(table) => [
		index("card_setup_look").on(table.lookAt).where(sql`${table.state} = 'open'`),
		index("card_setup_account").on(table.accountId).where(sql`${table.state} = 'open'`),
	],
);

/** Below so much buy so much, at most so much a month. No row: switched off. */
export const autoTopUp = pgTable(
	"auto_top_up",
	{
		accountId: text("account_id").primaryKey(),
		belowNanoUsd: nano("below_nano_usd"),
		amountNanoUsd: nano("amount_nano_usd"),
		/** In a calendar month of the account's time zone; what was begun counts. */
		monthMostNanoUsd: nano("month_most_nano_usd"),
		/** stopped: until it is saved again. needs_owner: until the payment that waits is made or cancelled. */
		state: text({ enum: ["on", "stopped", "needs_owner"] }).notNull(),
		/** Why it is not on: a word of `stop-reasons.ts`. */
		reason: text(),
		changedAt: moment("changed_at").notNull().defaultNow(),
		/** When it is looked at without being touched: what kept it from buying may be over then. */
		lookAt: moment("look_at"),
		/** What its people are still to be told. */
		tell: text(),
	},
	(table) => [
		index("auto_top_up_look").on(table.lookAt).where(sql`${table.state} = 'on' and ${table.lookAt} is not null`),
		index("auto_top_up_tell").on(table.changedAt).where(sql`${table.tell} is not null`),
	],
);

/** Accounts whose credit changed since the last look, if they are topped up automatically. Triggers write it. */
export const autoTopUpTouched = pgTable("auto_top_up_touched", {
	id: bigserial({ mode: "number" }).primaryKey(),
	accountId: text("account_id").notNull(),
});

/** One crossing. An open one keeps the next from beginning. */
export const autoTopUpAttempt = pgTable(
	"auto_top_up_attempt",
	{
		/** `att_…`: Stripe's Idempotency-Key. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		topUpId: text("top_up_id").notNull().unique(),
		/** Of the payment, as it was asked for first: a repetition asks for the very same. */
		amountNanoUsd: nano("amount_nano_usd"),
		customerId: text("customer_id").notNull(),
		paymentMethodId: text("payment_method_id").notNull(),
		/** unknown: it was sent and no answer says what came of it. ended: nothing was charged and nothing can be. */
		state: text({
			enum: ["begun", "sent", "unknown", "needs_authentication", "succeeded", "declined", "ended"],
		}).notNull(),
		reason: text(),
		/** `pi_…`, once it is known. */
		paymentId: text("payment_id"),
		begunAt: moment("begun_at").notNull().defaultNow(),
		/** Which it was bought in, by the zone that the account had then: `2027-01`. Null where a former version began it. */
		month: text(),
		sentAt: moment("sent_at"),
		endedAt: moment("ended_at"),
		/** When whoever comes first looks after it. */
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
