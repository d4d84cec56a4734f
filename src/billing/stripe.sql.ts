import { sql } from "drizzle-orm";
import { bigint, boolean, date, index, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/** Events of Stripe that were processed, each once. */
export const stripeEvent = pgTable("stripe_event", {
	id: text().primaryKey(),
	type: text().notNull(),
	receivedAt: timestamp("received_at", { withTimezone: true }).notNull().defaultNow(),
	/** `applied`, `ignored`, or why it was refused. */
	outcome: text().notNull(),
	detail: jsonb().$type<Record<string, unknown>>().notNull(),
});

/** Stripe's page on which a card top-up is paid. */
export const stripeCheckout = pgTable("stripe_checkout", {
	/** `cs_…` */
	id: text().primaryKey(),
	topUpId: text("top_up_id").notNull().unique(),
	createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
});

/**
 * What Stripe has reported about a payment, in any order. Bookings are computed from this row. Events only move its
 * values forward, so late and repeated events change nothing.
 */
export const stripePayment = pgTable(
	"stripe_payment",
	{
		/** Payment intent, `pi_…`. */
		id: text().primaryKey(),
		/** Null while only refunds or disputes were reported. */
		topUpId: text("top_up_id").unique(),
		/** Sum of all refunds that Stripe reported. */
		refundedCents: bigint("refunded_cents", { mode: "number" }).notNull().default(0),
		/** Part of the refunds that was booked. */
		bookedRefundCents: bigint("booked_refund_cents", { mode: "number" }).notNull().default(0),
		/** Stripe's fee, and when it was recorded; null: not reported. */
		feeCents: bigint("fee_cents", { mode: "number" }),
		feeAt: timestamp("fee_at", { withTimezone: true }),
	},
	(table) => [
		index("stripe_payment_fee").on(table.feeAt).where(sql`${table.feeAt} is not null`),
		/** Index of the few payments that owe something; read every few seconds. */
		index("stripe_payment_owed").on(table.id).where(sql`${table.bookedRefundCents} < ${table.refundedCents}`),
	],
);

export const stripeDispute = pgTable(
	"stripe_dispute",
	{
		/** `dp_…` */
		id: text().primaryKey(),
		paymentId: text("payment_id").notNull(),
		amountCents: bigint("amount_cents", { mode: "number" }).notNull(),
		/** won and lost are final. */
		state: text({ enum: ["open", "won", "lost"] }).notNull(),
		/** What was booked: nothing, the taken amount, or its return. */
		booked: text({ enum: ["nothing", "taken", "returned"] })
			.notNull()
			.default("nothing"),
		/** True if this dispute suspended the account. */
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

/** Differences between Stripe and the books. An open one raises an alert. */
export const stripeFinding = pgTable(
	"stripe_finding",
	{
		/** Unique subject: `paid:pi_…`, `books:top_…`, `refund:pi_…`, `dispute:dp_…`, `open:att_…`. */
		id: text().primaryKey(),
		/**
		 * uncredited: paid at Stripe, but not credited. unpaid: credited, but not paid. refund, dispute: the amounts
		 * differ. unfinished: too many objects to compare. undecided: unknown whether a saved card was charged.
		 */
		kind: text({ enum: ["uncredited", "unpaid", "refund", "dispute", "unfinished", "undecided"] }).notNull(),
		/** Text for operators; `received` until the payment's effects are committed. */
		reason: text().notNull(),
		topUpId: text("top_up_id"),
		amountCents: bigint("amount_cents", { mode: "number" }),
		currency: text(),
		foundAt: timestamp("found_at", { withTimezone: true }).notNull().defaultNow(),
		resolvedAt: timestamp("resolved_at", { withTimezone: true }),
		/** `stripe`, or the operator who resolved it. */
		resolvedBy: text("resolved_by"),
		resolution: text(),
	},
	(table) => [index("stripe_finding_open").on(table.foundAt).where(sql`${table.resolvedAt} is null`)],
);

/** A day's comparison with Stripe, which one console makes. */
export const stripeClearing = pgTable("stripe_clearing", {
	/** Day in UTC. */
	day: date({ mode: "string" }).primaryKey(),
	startedAt: timestamp("started_at", { withTimezone: true }).notNull().defaultNow(),
	/** Null during the comparison and after an interruption. */
	finishedAt: timestamp("finished_at", { withTimezone: true }),
	/** Counts: objects compared, and objects that no event had reported. */
	outcome: jsonb().$type<Record<string, number>>(),
});
