import { bigint, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * An instance's share of a key's limit. The shares of a key and kind never pass the limit together. No row: no share. A
 * lost instance's share goes on counting for its last minutes, see `../db/functions/limits.sql`.
 */
export const keyShare = pgTable(
	"key_share",
	{
		keyId: text("key_id").notNull(),
		/** Requests a minute, or concurrent requests. */
		kind: text({ enum: ["rate", "running"] }).notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		amount: integer().notNull(),
		/** The instance's own number of the request: an older one changes nothing. */
		seq: bigint({ mode: "number" }).notNull(),
		at: timestamp({ withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.keyId, table.kind, table.instanceId, table.epoch] })],
);
