import { sql } from "drizzle-orm";
import {
	bigint,
	boolean,
	check,
	index,
	integer,
	pgSequence,
	pgTable,
	primaryKey,
	text,
	timestamp,
	uuid,
} from "drizzle-orm/pg-core";

/**
 * An instance's part of a budget: credit that it may spend without a query. One row per budget and epoch. The row is
 * open while credit is left: the statement that takes the last credit closes it, and the next grant opens it again.
 */
export const lease = pgTable(
	"lease",
	{
		budgetId: text("budget_id").notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		grantedNanoUsd: bigint("granted_nano_usd", { mode: "number" }).notNull().default(0),
		returnedNanoUsd: bigint("returned_nano_usd", { mode: "number" }).notNull().default(0),
		/** Only this instance's settlements change it, so instances never wait for each other. */
		settledNanoUsd: bigint("settled_nano_usd", { mode: "number" }).notNull().default(0),
		state: text({ enum: ["open", "closed"] })
			.notNull()
			.default("open"),
		/** Newest recall that this instance answered, by returning all credit that was idle when it was sent. */
		recalled: bigint({ mode: "number" }).notNull().default(0),
		/** True if `sealed_budget` contains its sums. A trigger subtracts them if a late settlement changes the lease. */
		sealed: boolean().notNull().default(false),
	},
	(table) => [
		primaryKey({ columns: [table.budgetId, table.instanceId, table.epoch] }),
		/** Index for the checks of the books. */
		index("lease_unsealed").on(table.instanceId, table.epoch).where(sql`not ${table.sealed}`),
		/** Index for the spending of a budget's unsealed leases; `sealed_budget` has the sum of the sealed ones. */
		index("lease_unsealed_budget").on(table.budgetId).where(sql`not ${table.sealed}`),
		/** Index for deleting old leases. */
		index("lease_sealed").on(table.instanceId, table.epoch).where(sql`${table.sealed}`),
		/** Index of leases that still hold credit when an epoch ends. */
		index("lease_instance_open").on(table.instanceId, table.epoch).where(sql`${table.state} = 'open'`),
		index("lease_open").on(table.budgetId).where(sql`${table.state} = 'open'`),
		check(
			"lease_covers_settled",
			sql`${table.grantedNanoUsd} - ${table.returnedNanoUsd} - ${table.settledNanoUsd} >= 0`,
		),
	],
);

/** Numbers recalls. Rows may become visible in another order than their numbers, see `recall`. */
export const recallTicket = pgSequence("recall_ticket");

/**
 * Requests to other instances to return idle credit of a budget; kept for a minute. An instance that answers number n
 * has returned all credit that was idle after n was issued, so lower numbers that become visible later are answered
 * too.
 */
export const recall = pgTable(
	"recall",
	{
		budgetId: text("budget_id").notNull(),
		ticket: bigint({ mode: "number" }).notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		at: timestamp({ withTimezone: true }).notNull().default(sql`clock_timestamp()`),
	},
	(table) => [primaryKey({ columns: [table.budgetId, table.ticket] }), index("recall_at").on(table.at)],
);

/** Grants and returns that were executed, so that a repeated one changes nothing. */
export const leaseOp = pgTable(
	"lease_op",
	{
		id: uuid().primaryKey(),
		budgetId: text("budget_id").notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		kind: text({ enum: ["grant", "return"] }).notNull(),
		amountNanoUsd: bigint("amount_nano_usd", { mode: "number" }).notNull(),
		at: timestamp({ withTimezone: true }).notNull().default(sql`books_now()`),
	},
	(table) => [
		index("lease_op_lease").on(table.budgetId, table.instanceId, table.epoch),
		/** Index for sealing days. */
		index("lease_op_at").on(table.at),
	],
);
