import { sql } from "drizzle-orm";
import { bigint, integer, pgTable, primaryKey, smallint, text, timestamp, uuid } from "drizzle-orm/pg-core";

const moment = (name: string) => timestamp(name, { withTimezone: true });
const NOBODY = sql`'00000000-0000-0000-0000-000000000000'`;
const EVER = sql`'-infinity'`;

/** How far old rows of the books are removed, to the row; one row, made when something is removed first. README.md says how. */
export const removal = pgTable("removal", {
	id: smallint().primaryKey(),
	/** No request that was admitted before is settled any more: it may have been, and its row be gone. Never goes back. */
	usageBefore: moment("usage_before").notNull().default(EVER),
	/** When that was said. Whoever settles by what was said before has ended some time after. */
	usageSaidAt: moment("usage_said_at").notNull().default(EVER),
	/** Sums of hours before stay as they are, whatever is read again, and requests of before are removed. */
	usageFrozen: moment("usage_frozen").notNull().default(EVER),
	/** The last settled request that was looked at, on the way to the above. */
	usageAt: moment("usage_at").notNull().default(EVER),
	usageId: uuid("usage_id").notNull().default(NOBODY),
	/** The last operation on a lease that was looked at, in the present round. */
	opAt: moment("op_at").notNull().default(EVER),
	opId: uuid("op_id").notNull().default(NOBODY),
	/** When that round began. */
	opRoundAt: moment("op_round_at").notNull().default(EVER),
});

/**
 * Settlements that came when requests of their time were removed already: most were in the books once, which nobody can
 * tell any more, so none is charged. Counted as often as they come.
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
