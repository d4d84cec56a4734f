import { bigint, date, index, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type { PriceTerms } from "../catalog/agreements.ts";

/** Changes of an account's credit or prices by operators, with the decision of a second operator if one is needed. */
export const creditAdjustment = pgTable(
	"credit_adjustment",
	{
		/** `adj_…`, sortable by creation time; part of the ids of rate cards by agreed prices. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		kind: text({ enum: ["adjustment", "promotion", "price"] })
			.notNull()
			.default("adjustment"),
		/** Last day (UTC) on which promotional credit can be spent; null: it does not expire. */
		lastDay: date("last_day", { mode: "string" }),
		/** Agreed prices. They never change, because the ids of rate cards name them. */
		terms: jsonb().$type<PriceTerms>(),
		/** Negative if the adjustment removes credit; 0 for prices. */
		amountNanoUsd: bigint("amount_nano_usd", { mode: "number" }).notNull(),
		reason: text().notNull(),
		/** Chosen by the client, so that a repeated request makes one adjustment. */
		idempotencyKey: text("idempotency_key").notNull().unique(),
		state: text({ enum: ["pending", "booked", "rejected"] }).notNull(),
		firstBy: text("first_by").notNull(),
		firstAt: timestamp("first_at", { withTimezone: true }).notNull().defaultNow(),
		/** The second operator, who confirmed or rejected the adjustment. */
		secondBy: text("second_by"),
		secondAt: timestamp("second_at", { withTimezone: true }),
	},
	(table) => [
		index("credit_adjustment_state").on(table.state, table.id),
		index("credit_adjustment_first").on(table.firstBy, table.firstAt),
	],
);
