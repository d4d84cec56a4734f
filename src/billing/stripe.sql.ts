import { sql } from "drizzle-orm";
import { bigint, boolean, date, index, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/** Every event of Stripe's that was taken in; its id is taken once. */
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
 * What Stripe has told of a payment so far, in whatever order it told it. What is booked follows from this row: events
 * only ever move it forward, so late and repeated ones change nothing.
 */
export const stripePayment = pgTable(
	"stripe_payment",
	{
		/** Payment intent, `pi_…`. */
		id: text().primaryKey(),
		/** The top-up that it paid; null while only a refund or dispute of it was heard of. */
		topUpId: text("top_up_id").unique(),
		/** Sum of all refunds. */
		refundedCents: bigint("refunded_cents", { mode: "number" }).notNull().default(0),
		/** How much of that is in the ledger. */
		bookedRefundCents: bigint("booked_refund_cents", { mode: "number" }).notNull().default(0),
	},
	(table) => [
		/** What is still to be taken: few of all payments, and looked for every few seconds. */
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
		/** What the ledger says: nothing, the amount taken, the amount taken and given back. */
		booked: text({ enum: ["nothing", "taken", "returned"] })
			.notNull()
			.default("nothing"),
		/** The account was active and is suspended because of this dispute. */
		suspended: boolean().notNull().default(false),
	},
	(table) => [
		index("stripe_dispute_payment").on(table.paymentId),
		/** What is still to be booked, as of payments. */
		index("stripe_dispute_owed").on(table.paymentId).where(isOwed(table)),
	],
);

function isOwed({ booked, state }: { booked: unknown; state: unknown }) {
	return sql`(${booked} = 'nothing' and ${state} <> 'won') or (${booked} = 'taken' and ${state} = 'won')`;
}

/** Money that Stripe and the books do not agree about. An open one is an alarm. */
export const stripeFinding = pgTable(
	"stripe_finding",
	{
		/** The payment, refund or dispute that it is about: `paid:pi_…`, `books:top_…`, `refund:pi_…`, `dispute:dp_…`, `open:att_…`. */
		id: text().primaryKey(),
		/**
		 * uncredited: paid there, no credit here; unpaid: credit here, not paid there; refund and dispute: they differ;
		 * unfinished: there was more than one clearing compares; undecided: nobody says whether a saved card was charged.
		 */
		kind: text({ enum: ["uncredited", "unpaid", "refund", "dispute", "unfinished", "undecided"] }).notNull(),
		/** In words for operators; `received` from a payment's arrival until what follows from it is committed. */
		reason: text().notNull(),
		topUpId: text("top_up_id"),
		amountCents: bigint("amount_cents", { mode: "number" }),
		currency: text(),
		foundAt: timestamp("found_at", { withTimezone: true }).notNull().defaultNow(),
		resolvedAt: timestamp("resolved_at", { withTimezone: true }),
		/** `stripe`, or the operator who dealt with it by hand. */
		resolvedBy: text("resolved_by"),
		resolution: text(),
	},
	(table) => [index("stripe_finding_open").on(table.foundAt).where(sql`${table.resolvedAt} is null`)],
);

/** One comparison of Stripe's lists with the books for each day, by whichever console comes first. */
export const stripeClearing = pgTable("stripe_clearing", {
	/** In UTC. */
	day: date({ mode: "string" }).primaryKey(),
	startedAt: timestamp("started_at", { withTimezone: true }).notNull().defaultNow(),
	/** Null while it runs, and after one that was broken off. */
	finishedAt: timestamp("finished_at", { withTimezone: true }),
	/** Objects compared, and how many were told by no event. */
	outcome: jsonb().$type<Record<string, number>>(),
});
