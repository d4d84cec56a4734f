import { sql } from "drizzle-orm";
import { bigint, boolean, index, integer, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * States of instances' epochs. Each change and heartbeat adds a row and none is updated, so no lock delays a heartbeat
 * or fence. The newest row of an epoch is its state (view `instance_now`).
 */
export const instanceBeat = pgTable(
	"instance_beat",
	{
		id: text().notNull(),
		/** Number of the epoch, which grows with each start of the instance. Journal and leases belong to an epoch. */
		epoch: integer().notNull(),
		/** Number of the heartbeat within the epoch; each heartbeat is a row of its own. */
		beat: bigint({ mode: "number" }).notNull(),
		/**
		 * joining → live ⇄ silent → dead → closing → left.
		 * - silent: another instance has seen no heartbeat for longer than the lease, by its own clock.
		 * - dead: admits no requests any more, but may still settle.
		 * - closing: its leases of credit are being closed.
		 */
		state: text({ enum: ["joining", "live", "silent", "dead", "closing", "left"] }).notNull(),
		/** Length of the lease that starts with this row. A waiting instance counts it from when it first saw the row. */
		ttlMs: integer("ttl_ms").notNull(),
		/** End of the lease by the database's wall clock; for display only. */
		leaseUntil: timestamp("lease_until", { withTimezone: true }).notNull(),
		/** Newest control entry that the instance has applied. */
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
 * Servers that have served this database, by system identifier and timeline. Until a server is `quiet`, instances may
 * still act on entries of the previous server that this one lacks.
 */
export const serverSeen = pgTable(
	"server_seen",
	{ mark: text().notNull(), quiet: boolean().notNull(), at: timestamp({ withTimezone: true }).notNull().defaultNow() },
	(table) => [primaryKey({ columns: [table.mark, table.quiet] })],
);

/** Changes that running instances must apply, in order. */
export const controlLog = pgTable("control_log", {
	seq: bigint({ mode: "number" }).primaryKey(),
	kind: text({ enum: ["key", "account", "project", "budget"] }).notNull(),
	/** Id of the key, account, project or budget that changed. */
	subject: text().notNull(),
	payload: jsonb().notNull(),
	at: timestamp({ withTimezone: true }).notNull().defaultNow(),
});

/** Entries of transactions with several statements. A trigger appends them to the log at commit. */
export const controlPending = pgTable("control_pending", {
	id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
	kind: text().notNull(),
	subject: text().notNull(),
	payload: jsonb().notNull(),
});

/** Changes that this server lost in a failover and instances still knew. */
export const lostAct = pgTable(
	"lost_act",
	{
		/** Number and time of the entry in the previous server's control log. */
		seq: bigint({ mode: "number" }).notNull(),
		at: timestamp({ withTimezone: true }).notNull(),
		kind: text().notNull(),
		subject: text().notNull(),
		/** redone: the act revoked a right and was repeated. lost: it granted something that an operator must repeat. */
		outcome: text({ enum: ["redone", "lost"] }).notNull(),
		foundAt: timestamp("found_at", { withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.seq, table.at] }), index("lost_act_found").on(table.foundAt)],
);
