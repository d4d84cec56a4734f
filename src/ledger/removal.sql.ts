import { sql } from "drizzle-orm";
import { bigint, integer, pgTable, primaryKey, smallint, text, timestamp, uuid } from "drizzle-orm/pg-core";

const moment = (name: string) => timestamp(name, { withTimezone: true });
const NOBODY = sql`'00000000-0000-0000-0000-000000000000'`;
const EVER = sql`'-infinity'`;

/** Position of the removal of old books rows. One row, made by the first removal; closed-days.md describes the order. */
export const removal = pgTable("removal", {
	id: smallint().primaryKey(),
	/** Requests admitted before are not settled any more: their rows may have been removed. Never goes back. */
	usageBefore: moment("usage_before").notNull().default(EVER),
	/** When `usage_before` was set. Settlements under the former value have ended some time after it. */
	usageSaidAt: moment("usage_said_at").notNull().default(EVER),
	/** Hourly sums before this moment stay as they are, and requests of before are removed. */
	usageFrozen: moment("usage_frozen").notNull().default(EVER),
	/** The last settled request that the removal looked at. */
	usageAt: moment("usage_at").notNull().default(EVER),
	usageId: uuid("usage_id").notNull().default(NOBODY),
	/** The last operation on a lease that the present round looked at. */
	opAt: moment("op_at").notNull().default(EVER),
	opId: uuid("op_id").notNull().default(NOBODY),
	opRoundAt: moment("op_round_at").notNull().default(EVER),
});

/**
 * Settlements that came after requests of their time were removed. Most were in the books once, which cannot be seen
 * any more, so none is charged. Repetitions count each time.
 */
export const refusedSettlement = pgTable(
	"refused_settlement",
	{
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		requests: bigint({ mode: "number" }).notNull(),
		/** What they would have cost. */
		chargedNanoUsd: bigint("charged_nano_usd", { mode: "number" }).notNull(),
		at: moment("at").notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.instanceId, table.epoch] })],
);
