import { sql } from "drizzle-orm";
import { bigint, integer, pgTable, primaryKey, smallint, text, timestamp, uuid } from "drizzle-orm/pg-core";

const moment = (name: string) => timestamp(name, { withTimezone: true });
const NOBODY = sql`'00000000-0000-0000-0000-000000000000'`;
const EVER = sql`'-infinity'`;

/** Progress of deleting old rows; one row. The paper closed-days.md describes the steps. */
export const removal = pgTable("removal", {
	id: smallint().primaryKey(),
	/** Requests admitted before this time cannot be settled: their rows may have been deleted. Never decreases. */
	usageBefore: moment("usage_before").notNull().default(EVER),
	/** When `usage_before` was set. The deletion waits until settlements that used the previous value have ended. */
	usageSaidAt: moment("usage_said_at").notNull().default(EVER),
	/** Hourly sums before this time are final, and requests before it may be deleted. */
	usageFrozen: moment("usage_frozen").notNull().default(EVER),
	/** Time and id of the last settled request that the deletion has read. */
	usageAt: moment("usage_at").notNull().default(EVER),
	usageId: uuid("usage_id").notNull().default(NOBODY),
	/** The last lease operation that the present round has read. */
	opAt: moment("op_at").notNull().default(EVER),
	opId: uuid("op_id").notNull().default(NOBODY),
	opRoundAt: moment("op_round_at").notNull().default(EVER),
});

/**
 * Settlements that arrived after records of their time were deleted. They are not charged, because most of them were
 * recorded before. Repetitions count each time.
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
