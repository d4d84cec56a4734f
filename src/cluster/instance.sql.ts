import { sql } from "drizzle-orm";
import { bigint, boolean, index, integer, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * The states of an instance's epoch. Each change or heartbeat adds a row and none is updated, so no row lock can make a
 * heartbeat or a fence wait. The newest row counts (view `instance_now`).
 */
export const instanceBeat = pgTable(
	"instance_beat",
	{
		id: text().notNull(),
		/** Grows with each start of the same identity; journal and leases belong to it. */
		epoch: integer().notNull(),
		/** Counts the rows of the epoch. */
		beat: bigint({ mode: "number" }).notNull(),
		/**
		 * joining → live ⇄ silent → dead → closing → left.
		 * - silent: another instance has seen no heartbeat for longer than its lease, by its own clock.
		 * - dead: admits nothing any more and may still settle.
		 * - closing: its leases are being closed.
		 */
		state: text({ enum: ["joining", "live", "silent", "dead", "closing", "left"] }).notNull(),
		/** Length of the lease that this row began. An instance that waits for its end counts from when it saw the row. */
		ttlMs: integer("ttl_ms").notNull(),
		/** When it ends by the database's wall clock: for people. */
		leaseUntil: timestamp("lease_until", { withTimezone: true }).notNull(),
		/** The newest entry of the control log that it has applied. */
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
 * Servers that this database has lived on: system identifier and timeline. On one not yet `quiet`, instances may still
 * act on entries of the former server that this one lacks.
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

/** Every change that running instances must apply, in order. */
export const controlLog = pgTable("control_log", {
	seq: bigint({ mode: "number" }).primaryKey(),
	kind: text({ enum: ["key", "account", "project", "budget"] }).notNull(),
	/** The id of the key, account or budget. */
	subject: text().notNull(),
	payload: jsonb().notNull(),
	at: timestamp({ withTimezone: true }).notNull().defaultNow(),
});

/** Entries of a transaction of several statements: they are appended to the log at its commit. */
export const controlPending = pgTable("control_pending", {
	id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
	kind: text().notNull(),
	subject: text().notNull(),
	payload: jsonb().notNull(),
});
