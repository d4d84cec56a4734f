import { bigint, boolean, index, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";

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
export const stripePayment = pgTable("stripe_payment", {
	/** Payment intent, `pi_…`. */
	id: text().primaryKey(),
	/** The top-up that it paid; null while only a refund or dispute of it was heard of. */
	topUpId: text("top_up_id").unique(),
	/** Sum of all refunds. */
	refundedCents: bigint("refunded_cents", { mode: "number" }).notNull().default(0),
	/** How much of that is in the ledger. */
	bookedRefundCents: bigint("booked_refund_cents", { mode: "number" }).notNull().default(0),
});

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
	(table) => [index("stripe_dispute_payment").on(table.paymentId)],
);
