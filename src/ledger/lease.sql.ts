import { sql } from "drizzle-orm";
import { bigint, check, index, integer, pgTable, primaryKey, text, timestamp, uuid } from "drizzle-orm/pg-core";

/** An instance's slice of a budget: what it may spend without asking. One row per budget and instance epoch. */
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
	},
	(table) => [
		primaryKey({ columns: [table.budgetId, table.instanceId, table.epoch] }),
		index("lease_instance").on(table.instanceId, table.epoch),
		index("lease_open").on(table.budgetId).where(sql`${table.state} = 'open'`),
		check(
			"lease_covers_settled",
			sql`${table.grantedNanoUsd} - ${table.returnedNanoUsd} - ${table.settledNanoUsd} >= 0`,
		),
	],
);

/** Each grant and return that was carried out, so that a repeated one changes nothing. */
export const leaseOp = pgTable(
	"lease_op",
	{
		id: uuid().primaryKey(),
		budgetId: text("budget_id").notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		kind: text({ enum: ["grant", "return"] }).notNull(),
		amountNanoUsd: bigint("amount_nano_usd", { mode: "number" }).notNull(),
		at: timestamp({ withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [index("lease_op_lease").on(table.budgetId, table.instanceId, table.epoch)],
);
