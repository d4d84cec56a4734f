import { sql } from "drizzle-orm";
import { bigint, boolean, index, integer, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { account } from "./account.sql.ts";
import { project } from "./project.sql.ts";

/**
 * An API key. Its lifetime cap is the budget of the same id; each period of a renewing cap has its own. The secret
 * itself is stored nowhere.
 */
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
		/** The displayable part of the secret: its beginning and its last four characters. */
		prefix: text().notNull(),
		lastFour: text("last_four").notNull(),
		state: text({ enum: ["active", "revoked"] })
			.notNull()
			.default("active"),
		/** The owner's cap; null: none. The limit in force is the budget's. */
		capNanoUsd: bigint("cap_nano_usd", { mode: "number" }),
		/** How often the cap renews. */
		capPeriod: text("cap_period", { enum: ["lifetime", "day", "week", "month"] })
			.notNull()
			.default("lifetime"),
		/** Null: its account's own. */
		projectId: text("project_id").references(() => project.id),
		/** Model ids; empty means all. */
		models: jsonb().$type<readonly string[]>().notNull().default(sql`'[]'::jsonb`),
		/** When the key ends: its expiry, or the end of a rotated key's grace. */
		expiresAt: timestamp("expires_at", { withTimezone: true }),
		requestsPerMinute: integer("requests_per_minute"),
		concurrencyMax: integer("concurrency_max"),
		/** True for a read-only key; its cap is 0. */
		readsOnly: boolean("reads_only").notNull().default(false),
		/** The key that replaces this one after a rotation. */
		replacedBy: text("replaced_by"),
		/** Coarse: the hourly sums write it. */
		lastUsedAt: timestamp("last_used_at", { withTimezone: true }),
		/**
		 * The person who made it, for members who may see only their own keys; a replacement keeps the person. Null: made
		 * by no person.
		 */
		madeBy: text("made_by"),
		createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
		revokedAt: timestamp("revoked_at", { withTimezone: true }),
	},
	(table) => [
		index("api_key_account").on(table.accountId),
		/** Keys that end soon. */
		index("api_key_expires")
			.on(table.expiresAt)
			.where(sql`${table.state} = 'active' and ${table.expiresAt} is not null`),
		index("api_key_project").on(table.projectId).where(sql`${table.projectId} is not null`),
	],
);
