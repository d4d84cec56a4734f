import { sql } from "drizzle-orm";
import { bigint, boolean, date, index, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/** Processed events of Stripe, each once. */
export const stripeEvent = pgTable("stripe_event", {
	id: text().primaryKey(),
	type: text().notNull(),
	receivedAt: timestamp("received_at", { withTimezone: true }).notNull().defaultNow(),
	/** `applied`, `ignored`, or why it was refused. */
	outcome: text().notNull(),
	detail: jsonb().$type<Record<string, unknown>>().notNull(),
});

/** The page where a card top-up is paid. */
export const stripeCheckout = pgTable("stripe_checkout", {
	/** `cs_…` */
	id: text().primaryKey(),
	topUpId: text("top_up_id").notNull().unique(),
	createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
});

/**
 * What Stripe has reported of a payment, in any order. Bookings follow from this row; events only move it forward, so
 * late and repeated ones change nothing.
 */
export const stripePayment = pgTable(
	"stripe_payment",
	{
		/** Payment intent, `pi_…`. */
		id: text().primaryKey(),
		/** The top-up; null while only a refund or dispute was reported. */
		topUpId: text("top_up_id").unique(),
		/** Sum of all refunds. */
		refundedCents: bigint("refunded_cents", { mode: "number" }).notNull().default(0),
		/** The part that is booked. */
		bookedRefundCents: bigint("booked_refund_cents", { mode: "number" }).notNull().default(0),
	},
	(table) => [
		/** Payments with something owed: few, and read every few seconds. */
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
		/** What is booked: nothing, the amount taken, or the amount given back. */
		booked: text({ enum: ["nothing", "taken", "returned"] })
			.notNull()
			.default("nothing"),
		/** This dispute suspended the account. */
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
		 * uncredited: paid at Stripe, not credited. unpaid: credited, not paid. refund and dispute: they differ.
		 * unfinished: more objects than one clearing compares. undecided: unknown whether a saved card was charged.
		 */
		kind: text({ enum: ["uncredited", "unpaid", "refund", "dispute", "unfinished", "undecided"] }).notNull(),
		/** Text for operators; `received` from a payment's arrival until its effects are committed. */
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

/** One clearing per day, by the first console. */
export const stripeClearing = pgTable("stripe_clearing", {
	/** In UTC. */
	day: date({ mode: "string" }).primaryKey(),
	startedAt: timestamp("started_at", { withTimezone: true }).notNull().defaultNow(),
	/** Null while it runs, and after an interrupted one. */
	finishedAt: timestamp("finished_at", { withTimezone: true }),
	/** Objects compared, and how many no event had reported. */
	outcome: jsonb().$type<Record<string, number>>(),
});
