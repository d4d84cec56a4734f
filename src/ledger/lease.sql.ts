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
 * An instance's slice of a budget: credit it may spend without a query. One row per budget and instance epoch, open
 * while something is left: a statement that empties it closes it, the next grant reopens it.
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
		/** The newest recall that this instance has answered: all credit idle here then has been returned. */
		recalled: bigint({ mode: "number" }).notNull().default(0),
		/** Its sums are in `sealed_budget`; a trigger takes them out when a late settlement changes the lease. */
		sealed: boolean().notNull().default(false),
	},
	(table) => [
		primaryKey({ columns: [table.budgetId, table.instanceId, table.epoch] }),
		/** For the checks of the books. */
		index("lease_unsealed").on(table.instanceId, table.epoch).where(sql`not ${table.sealed}`),
		/** For what a budget has spent: the rest is in `sealed_budget`. */
		index("lease_unsealed_budget").on(table.budgetId).where(sql`not ${table.sealed}`),
		/** For the removal of old ones. */
		index("lease_sealed").on(table.instanceId, table.epoch).where(sql`${table.sealed}`),
		/** Leases that still hold something when an epoch ends. */
		index("lease_instance_open").on(table.instanceId, table.epoch).where(sql`${table.state} = 'open'`),
		index("lease_open").on(table.budgetId).where(sql`${table.state} = 'open'`),
		check(
			"lease_covers_settled",
			sql`${table.grantedNanoUsd} - ${table.returnedNanoUsd} - ${table.settledNanoUsd} >= 0`,
		),
	],
);

/** Numbers the recalls by when a number was taken, not when its row appeared; that is enough, see `recall`. */
export const recallTicket = pgSequence("recall_ticket");

/**
 * Recalls: an instance lacks credit of a budget and requests idle credit from the others. A row stays for a minute. An
 * instance that answers ticket n has returned what was idle after n was taken. So a lower number that appears later is
 * answered too.
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

/** Each grant and return that was carried out, so that a repetition changes nothing. */
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
		/** For the seals of days. */
		index("lease_op_at").on(table.at),
	],
);
