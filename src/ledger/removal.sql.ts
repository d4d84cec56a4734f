import { sql } from "drizzle-orm";
import { bigint, integer, pgTable, primaryKey, smallint, text, timestamp, uuid } from "drizzle-orm/pg-core";

const moment = (name: string) => timestamp(name, { withTimezone: true });
const NOBODY = sql`'00000000-0000-0000-0000-000000000000'`;
const EVER = sql`'-infinity'`;

/** Progress of deleting old rows; one row. closed-days.md describes the steps. */
export const removal = pgTable("removal", {
	id: smallint().primaryKey(),
	/** Requests admitted before this time can no longer be settled: rows may have been deleted. Never goes back. */
	usageBefore: moment("usage_before").notNull().default(EVER),
	/** When `usage_before` was set. Settlements that used the previous value end some time after it. */
	usageSaidAt: moment("usage_said_at").notNull().default(EVER),
	/** Hourly sums before this time are final, and requests before it may be deleted. */
	usageFrozen: moment("usage_frozen").notNull().default(EVER),
	/** Last settled request that the deletion read. */
	usageAt: moment("usage_at").notNull().default(EVER),
	usageId: uuid("usage_id").notNull().default(NOBODY),
	/** Last lease operation that the present round read. */
	opAt: moment("op_at").notNull().default(EVER),
	opId: uuid("op_id").notNull().default(NOBODY),
	opRoundAt: moment("op_round_at").notNull().default(EVER),
});

/**
 * Settlements that came after records of their time were deleted. They are not charged, because most were recorded
 * before. Repetitions count each time.
 */
export const refusedSettlement = pgTable(
	"refused_settlement",
	{
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		requests: bigint({ mode: "number" }).notNull(),
		/** What the settlements would have cost. */
		chargedNanoUsd: bigint("charged_nano_usd", { mode: "number" }).notNull(),
		at: moment("at").notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.instanceId, table.epoch] })],
);
