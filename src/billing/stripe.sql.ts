import { sql } from "drizzle-orm";
import { bigint, boolean, date, index, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/** Ids of Stripe's events that were processed, so that each is processed once. */
export const stripeEvent = pgTable("stripe_event", {
	id: text().primaryKey(),
	type: text().notNull(),
	receivedAt: timestamp("received_at", { withTimezone: true }).notNull().defaultNow(),
	/** `applied`, `ignored`, or the reason for refusing the event. */
	outcome: text().notNull(),
	detail: jsonb().$type<Record<string, unknown>>().notNull(),
});

/** Stripe's pages on which card top-ups are paid. */
export const stripeCheckout = pgTable("stripe_checkout", {
	/** Stripe's id of the page: `cs_…`. */
	id: text().primaryKey(),
	topUpId: text("top_up_id").notNull().unique(),
	createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
});

/**
 * What Stripe has reported about a payment. Bookings are computed from this row. Events only increase its values, so
 * late and repeated events change nothing.
 */
export const stripePayment = pgTable(
	"stripe_payment",
	{
		/** Stripe's id of the payment intent: `pi_…`. */
		id: text().primaryKey(),
		/** Null as long as only refunds or disputes of the payment were reported. */
		topUpId: text("top_up_id").unique(),
		/** Sum of all refunds that Stripe has reported. */
		refundedCents: bigint("refunded_cents", { mode: "number" }).notNull().default(0),
		/** Part of the refunds that is booked. */
		bookedRefundCents: bigint("booked_refund_cents", { mode: "number" }).notNull().default(0),
		/** Stripe's fee in cents, and when it was recorded; null: not yet reported. */
		feeCents: bigint("fee_cents", { mode: "number" }),
		feeAt: timestamp("fee_at", { withTimezone: true }),
	},
	(table) => [
		index("stripe_payment_fee").on(table.feeAt).where(sql`${table.feeAt} is not null`),
		/** Index of the few payments that owe something, which are read every few seconds. */
		index("stripe_payment_owed").on(table.id).where(sql`${table.bookedRefundCents} < ${table.refundedCents}`),
	],
);

export const stripeDispute = pgTable(
	"stripe_dispute",
	{
		/** Stripe's id of the dispute: `dp_…`. */
		id: text().primaryKey(),
		paymentId: text("payment_id").notNull(),
		amountCents: bigint("amount_cents", { mode: "number" }).notNull(),
		/** won and lost are final states. */
		state: text({ enum: ["open", "won", "lost"] }).notNull(),
		/** What the books contain: nothing, the amount taken, or its return. */
		booked: text({ enum: ["nothing", "taken", "returned"] })
			.notNull()
			.default("nothing"),
		/** True if this dispute caused the account's suspension. */
		suspended: boolean().notNull().default(false),
	},
	(table) => [
		index("stripe_dispute_payment").on(table.paymentId),
		index("stripe_dispute_owed").on(table.paymentId).where(isOwed(table)),
	],
);

function isOwed({ booked, state }: { booked: unknown; state: unknown }) {
	return sql`(${booked} = 'nothing' and ${state} <> 'won') or (${booked} = 'taken' and ${state} = 'won')`;
}

/** Differences between Stripe and the books. An open finding raises an alert. */
export const stripeFinding = pgTable(
	"stripe_finding",
	{
		/** Kind and id of the object: `paid:pi_…`, `books:top_…`, `refund:pi_…`, `dispute:dp_…`, `open:att_…`. */
		id: text().primaryKey(),
		/**
		 * uncredited: paid at Stripe, but not credited. unpaid: credited, but not paid. refund, dispute: the amounts
		 * differ. unfinished: too many objects to compare. undecided: unknown whether a saved card was charged.
		 */
		kind: text({ enum: ["uncredited", "unpaid", "refund", "dispute", "unfinished", "undecided"] }).notNull(),
		/** Text for operators; `received` until the effects of the payment are committed. */
		reason: text().notNull(),
		topUpId: text("top_up_id"),
		amountCents: bigint("amount_cents", { mode: "number" }),
		currency: text(),
		foundAt: timestamp("found_at", { withTimezone: true }).notNull().defaultNow(),
		resolvedAt: timestamp("resolved_at", { withTimezone: true }),
		/** Id of the operator who resolved the finding, or `stripe`. */
		resolvedBy: text("resolved_by"),
		resolution: text(),
	},
	(table) => [index("stripe_finding_open").on(table.foundAt).where(sql`${table.resolvedAt} is null`)],
);

/** Comparison of a day with Stripe, which one console runs. */
export const stripeClearing = pgTable("stripe_clearing", {
	/** The day in UTC. */
	day: date({ mode: "string" }).primaryKey(),
	startedAt: timestamp("started_at", { withTimezone: true }).notNull().defaultNow(),
	/** Null while the comparison runs and after an interruption. */
	finishedAt: timestamp("finished_at", { withTimezone: true }),
	/** Counts of objects: compared ones, and ones that no event had reported. */
	outcome: jsonb().$type<Record<string, number>>(),
});
