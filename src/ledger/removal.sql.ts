import { sql } from "drizzle-orm";
import { bigint, integer, pgTable, primaryKey, smallint, text, timestamp, uuid } from "drizzle-orm/pg-core";

const moment = (name: string) => timestamp(name, { withTimezone: true });
const NOBODY = sql`'00000000-0000-0000-0000-000000000000'`;
const EVER = sql`'-infinity'`;

/** Progress of the deletion of old rows; one row. `closed-days.md` describes the steps. */
export const removal = pgTable("removal", {
	id: smallint().primaryKey(),
	/** Requests admitted before this time cannot be settled: their rows may be deleted. Never decreases. */
	usageBefore: moment("usage_before").notNull().default(EVER),
	/** When `usage_before` was set. The deletion waits until all settlements that read the previous value have ended. */
	usageSaidAt: moment("usage_said_at").notNull().default(EVER),
	/** Hourly sums before this time no longer change, so requests before it may be deleted. */
	usageFrozen: moment("usage_frozen").notNull().default(EVER),
	/** Time and id of the last settled request that the deletion has examined. */
	usageAt: moment("usage_at").notNull().default(EVER),
	usageId: uuid("usage_id").notNull().default(NOBODY),
	/** Time and id of the last lease operation that the current pass has examined. */
	opAt: moment("op_at").notNull().default(EVER),
	opId: uuid("op_id").notNull().default(NOBODY),
	opRoundAt: moment("op_round_at").notNull().default(EVER),
});

/**
 * Settlements that arrived after the records of their time were deleted. They are not charged, because most of them
 * were settled before the deletion. Each repetition counts.
 */
export const refusedSettlement = pgTable(
	"refused_settlement",
	{
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		requests: bigint({ mode: "number" }).notNull(),
		/** What the refused settlements would have charged in total. */
		chargedNanoUsd: bigint("charged_nano_usd", { mode: "number" }).notNull(),
		at: moment("at").notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.instanceId, table.epoch] })],
);
