import { sql } from "drizzle-orm";
import { jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type { ManagementScope } from "./management-scope.ts";

/** A key of the management interface. It belongs to the operators and to no account; the secret is stored nowhere. */
export const managementKey = pgTable("management_key", {
	/** `mgk_…`: the actor in the audit log. */
	id: text().primaryKey(),
	name: text().notNull(),
	/** HMAC-SHA-256 of the secret under the pepper, in hex. */
	digest: text().notNull().unique(),
	/** The displayable part of the secret: its beginning and its last four characters. */
	prefix: text().notNull(),
	lastFour: text("last_four").notNull(),
	scopes: jsonb().$type<readonly ManagementScope[]>().notNull().default(sql`'[]'::jsonb`),
	/** When it expires. */
	expiresAt: timestamp("expires_at", { withTimezone: true }),
	/** The operator with whose rights it acts, or `cli`. */
	madeBy: text("made_by").notNull(),
	createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
	/** Coarse: to the minute. */
	lastUsedAt: timestamp("last_used_at", { withTimezone: true }),
	revokedAt: timestamp("revoked_at", { withTimezone: true }),
});

/**
 * Token of a repeatable creation, in the management interface or on a page, for a day. A client that sends a token
 * again gets the first result.
 */
export const managementClaim = pgTable("management_claim", {
	/** Keyed digest of the management key, or of the page's user, and the client's token. */
	id: text().primaryKey(),
	/** Keyed digest of the request's content. */
	request: text().notNull(),
	/** The id of the new object, chosen before it is made. */
	subject: text().notNull(),
	at: timestamp({ withTimezone: true }).notNull().defaultNow(),
});
