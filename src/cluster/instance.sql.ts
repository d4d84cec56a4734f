import { sql } from "drizzle-orm";
import { bigint, boolean, index, integer, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * What an epoch of an instance stands at: a row is added for each change and each heartbeat, the newest one counts (view
 * `instance_now`) and none is ever updated. So nobody's lock on a row can keep a heartbeat or a fence waiting.
 */
export const instanceBeat = pgTable(
	"instance_beat",
	{
		id: text().notNull(),
		/** Grows with each start of the same identity; its journal and leases are its own. */
		epoch: integer().notNull(),
		/** Counts the rows of the epoch. */
		beat: bigint({ mode: "number" }).notNull(),
		/**
		 * joining → live ⇄ silent → dead → closing → left. A silent one was not heard of for longer than its lease, by the
		 * clock of another instance. A dead one admits nothing any more and may still settle. A closing one's leases are being closed.
		 */
		state: text({ enum: ["joining", "live", "silent", "dead", "closing", "left"] }).notNull(),
		/** How long the lease is that this row began. Whoever waits for its end counts from when he saw the row. */
		ttlMs: integer("ttl_ms").notNull(),
		/** When it ends by the database's wall clock: for people. */
		leaseUntil: timestamp("lease_until", { withTimezone: true }).notNull(),
		/** The newest entry of the control log that it acts by. */
		appliedSeq: bigint("applied_seq", { mode: "number" }).notNull().default(0),
		startedAt: timestamp("started_at", { withTimezone: true }).notNull().defaultNow(),
		endedAt: timestamp("ended_at", { withTimezone: true }),
	},
	(table) => [
		primaryKey({ columns: [table.id, table.epoch, table.beat] }),
		index("instance_beat_unfinished").on(table.state).where(sql`${table.state} <> 'left'`),
	],
);

/**
 * The servers that this database has lived on: system identifier and timeline. On one that is not `quiet` yet instances
 * may still act by what the server before it had told them and this one does not know.
 */
export const serverSeen = pgTable(
	"server_seen",
	{
		mark: text().notNull(),
		quiet: boolean().notNull(),
		at: timestamp({ withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.mark, table.quiet] })],
);

/** Every change that running instances must hear of, in order. */
export const controlLog = pgTable("control_log", {
	seq: bigint({ mode: "number" }).primaryKey(),
	kind: text({ enum: ["key", "account", "project", "budget"] }).notNull(),
	/** The id of the key, account or budget. */
	subject: text().notNull(),
	payload: jsonb().notNull(),
	at: timestamp({ withTimezone: true }).notNull().defaultNow(),
});

/** Entries of a transaction that has more to do: they are appended to the log when it commits. */
export const controlPending = pgTable("control_pending", {
	id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
	kind: text().notNull(),
	subject: text().notNull(),
	payload: jsonb().notNull(),
});
