import { sql } from "drizzle-orm";
import { jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type { ManagementScope } from "./management-scope.ts";

/** A key of the management interface. It belongs to the operators and to no account; the secret is stored nowhere. */
export const managementKey = pgTable("management_key", {
	/** `mgk_…`: who acted, in the audit log. */
	id: text().primaryKey(),
	name: text().notNull(),
	/** HMAC-SHA-256 of the secret under the pepper, in hex. */
	digest: text().notNull().unique(),
	/** What may be shown of the secret: its beginning and its last four characters. */
	prefix: text().notNull(),
	lastFour: text("last_four").notNull(),
	scopes: jsonb().$type<readonly ManagementScope[]>().notNull().default(sql`'[]'::jsonb`),
	/** From then on it is refused. */
	expiresAt: timestamp("expires_at", { withTimezone: true }),
	/** The operator with whose right it acts, or `cli`. */
	madeBy: text("made_by").notNull(),
	createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
	/** Coarse: to the minute. */
	lastUsedAt: timestamp("last_used_at", { withTimezone: true }),
	revokedAt: timestamp("revoked_at", { withTimezone: true }),
});

/** What a repeated creation, there or on a page, is known by, for a day: whoever sends a token again gets what it made the first time. */
export const managementClaim = pgTable("management_claim", {
	/** Keyed digest of the management key, or of whose page it is, and the client's token. */
	id: text().primaryKey(),
	/** Keyed digest of what was asked for. */
	request: text().notNull(),
	/** The id under which it is made, chosen before it is. */
	subject: text().notNull(),
	at: timestamp({ withTimezone: true }).notNull().defaultNow(),
});
