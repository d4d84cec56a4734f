import { bigint, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/**
 * What an instance may count of a key's limit. Those of a key and kind together never pass the limit. No row: nothing.
 * What an instance that is gone counted in its last minutes counts on; see `../db/functions/limits.sql`.
 */
export const keyShare = pgTable(
	"key_share",
	{
		keyId: text("key_id").notNull(),
		/** Requests a minute, or at once. */
		kind: text({ enum: ["rate", "running"] }).notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		amount: integer().notNull(),
		/** The instance's own count of its asks: an older one changes nothing. */
		seq: bigint({ mode: "number" }).notNull(),
		at: timestamp({ withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.keyId, table.kind, table.instanceId, table.epoch] })],
);
