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
 * open while credit is left: the statement that takes the last credit closes the row, and the next grant reopens it.
 */
export const lease = pgTable(
	"lease",
	{
		budgetId: text("budget_id").notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		grantedNanoUsd: bigint("granted_nano_usd", { mode: "number" }).notNull().default(0),
		returnedNanoUsd: bigint("returned_nano_usd", { mode: "number" }).notNull().default(0),
		/** Changed only by settlements of the lease's own instance, so instances never wait for each other. */
		settledNanoUsd: bigint("settled_nano_usd", { mode: "number" }).notNull().default(0),
		state: text({ enum: ["open", "closed"] })
			.notNull()
			.default("open"),
		/** Newest recall that this instance answered by returning all credit that was idle at the recall. */
		recalled: bigint({ mode: "number" }).notNull().default(0),
		/** True if the sums in `sealed_budget` include the lease; a trigger subtracts it at a late settlement. */
		sealed: boolean().notNull().default(false),
	},
	(table) => [
		primaryKey({ columns: [table.budgetId, table.instanceId, table.epoch] }),
		/** Index for the checks of the ledger's invariants. */
		index("lease_unsealed").on(table.instanceId, table.epoch).where(sql`not ${table.sealed}`),
		/** Index that finds a budget's unsealed leases, whose spending is added to the sums in `sealed_budget`. */
		index("lease_unsealed_budget").on(table.budgetId).where(sql`not ${table.sealed}`),
		/** Index that finds old leases to delete. */
		index("lease_sealed").on(table.instanceId, table.epoch).where(sql`${table.sealed}`),
		/** Index that finds the leases to close when an epoch ends. */
		index("lease_instance_open").on(table.instanceId, table.epoch).where(sql`${table.state} = 'open'`),
		index("lease_open").on(table.budgetId).where(sql`${table.state} = 'open'`),
		check(
			"lease_covers_settled",
			sql`${table.grantedNanoUsd} - ${table.returnedNanoUsd} - ${table.settledNanoUsd} >= 0`,
		),
	],
);

/** Numbers recalls. Numbers may become visible out of order; the table `recall` says why that is safe. */
export const recallTicket = pgSequence("recall_ticket");

/**
 * Requests to the other instances to return idle credit of a budget; kept for a minute. An instance that answers number
 * n has returned all credit that was idle after n was issued. So its answer also covers lower numbers that become
 * visible later.
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

/** Ids of executed grants and returns, so that a repeated one changes nothing. */
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
		/** Index that finds the operations of a day to be sealed. */
		index("lease_op_at").on(table.at),
	],
);
