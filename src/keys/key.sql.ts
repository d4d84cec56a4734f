import { sql } from "drizzle-orm";
import { bigint, boolean, index, integer, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { account } from "./account.sql.ts";
import { project } from "./project.sql.ts";

/** An API key. Its lifetime cap is the budget of the same id; each period of one that begins anew has its own. The secret itself is stored nowhere. */
export const apiKey = pgTable(
	"api_key",
	{
		/** `key_…` */
		id: text().primaryKey(),
		accountId: text("account_id")
			.notNull()
			.references(() => account.id),
		name: text().notNull(),
		/** HMAC-SHA-256 of the secret under the pepper, in hex. */
		digest: text().notNull().unique(),
		/** What may be shown of the secret: its beginning and its last four characters. */
		prefix: text().notNull(),
		lastFour: text("last_four").notNull(),
		state: text({ enum: ["active", "revoked"] })
			.notNull()
			.default("active"),
		/** Null: no cap. The limit that counts is the budget's; this is what the owner wrote. */
		capNanoUsd: bigint("cap_nano_usd", { mode: "number" }),
		/** How often the cap begins anew. */
		capPeriod: text("cap_period", { enum: ["lifetime", "day", "week", "month"] })
			.notNull()
			.default("lifetime"),
		/** Null: its account's own. */
		projectId: text("project_id").references(() => project.id),
		/** Model ids; empty means all. */
		models: jsonb().$type<readonly string[]>().notNull().default(sql`'[]'::jsonb`),
		/** From then on the key is refused: an expiry, or the end of a rotated key's grace. */
		expiresAt: timestamp("expires_at", { withTimezone: true }),
		requestsPerMinute: integer("requests_per_minute"),
		concurrencyMax: integer("concurrency_max"),
		/** It opens look-ups alone; its cap is 0. */
		readsOnly: boolean("reads_only").notNull().default(false),
		/** The key that replaces this one after a rotation. */
		replacedBy: text("replaced_by"),
		/** Coarse: written by the write-behind path. */
		lastUsedAt: timestamp("last_used_at", { withTimezone: true }),
		/** Whose key it is, for who may see his own alone; a replacement is the same person's. Null: made by no person. */
		madeBy: text("made_by"),
		createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
		revokedAt: timestamp("revoked_at", { withTimezone: true }),
	},
	(table) => [
		index("api_key_account").on(table.accountId),
		/** Those that are about to end. */
		index("api_key_expires")
			.on(table.expiresAt)
			.where(sql`${table.state} = 'active' and ${table.expiresAt} is not null`),
		index("api_key_project").on(table.projectId).where(sql`${table.projectId} is not null`),
	],
);
