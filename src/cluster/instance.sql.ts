import { bigint, index, integer, jsonb, pgTable, primaryKey, smallint, text, timestamp } from "drizzle-orm/pg-core";

/** One life of one process that admits requests. */
export const instance = pgTable(
	"instance",
	{
		id: text().notNull(),
		/** Grows with each start of the same identity; its journal and leases are its own. */
		epoch: integer().notNull(),
		/** joining → live → left | dead. A dead one keeps its leases until its journal was replayed; then `left`. */
		state: text({ enum: ["joining", "live", "left", "dead"] }).notNull(),
		leaseUntil: timestamp("lease_until", { withTimezone: true }).notNull(),
		/** The newest entry of the control log that it acts by. */
		appliedSeq: bigint("applied_seq", { mode: "number" }).notNull().default(0),
		startedAt: timestamp("started_at", { withTimezone: true }).notNull().defaultNow(),
		endedAt: timestamp("ended_at", { withTimezone: true }),
	},
	(table) => [primaryKey({ columns: [table.id, table.epoch] }), index("instance_state").on(table.state)],
);

/** One row: its lock makes the order of sequence numbers the order of commits. */
export const controlClock = pgTable("control_clock", {
	id: smallint().primaryKey(),
	seq: bigint({ mode: "number" }).notNull(),
});

/** Every change that running instances must hear of, in order. */
export const controlLog = pgTable("control_log", {
	seq: bigint({ mode: "number" }).primaryKey(),
	kind: text({ enum: ["key", "account", "budget", "recall", "catalog"] }).notNull(),
	/** The id of the key, account or budget. */
	subject: text().notNull(),
	payload: jsonb().notNull(),
	at: timestamp({ withTimezone: true }).notNull().defaultNow(),
});
