import { sql } from "drizzle-orm";
import { bigint, customType, index, integer, pgTable, text, timestamp, uuid } from "drizzle-orm/pg-core";

const bytea = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });

/**
 * `Idempotency-Key`s used within a day. Neither header nor prompt can be derived from a row. The answer can be
 * decrypted only with the customer's secret and the header, which are not stored (`seal.ts`).
 */
export const idempotencyClaim = pgTable(
	"idempotency_claim",
	{
		/** SHA-256, in hex, of the API key's id and the header. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		/** Digest of path and body, keyed with a key that is not stored. */
		proof: text().notNull(),
		/** First of 256 request ids for the request's attempts; its last byte is 0. */
		requestId: uuid("request_id").notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		/** unkept: answered and charged, but the answer was too large or was removed for newer ones. */
		state: text({ enum: ["running", "answered", "unkept"] })
			.notNull()
			.default("running"),
		answer: bytea(),
		bytes: integer().notNull().default(0),
		claimedAt: timestamp("claimed_at", { withTimezone: true }).notNull().defaultNow(),
		expiresAt: timestamp("expires_at", { withTimezone: true }).notNull(),
	},
	(table) => [
		index("idempotency_claim_expires").on(table.expiresAt),
		index("idempotency_claim_answered").on(table.accountId, table.claimedAt).where(sql`${table.state} = 'answered'`),
	],
);

/** Sizes of the kept answers, per account. */
export const idempotencySpace = pgTable("idempotency_space", {
	accountId: text("account_id").primaryKey(),
	bytes: bigint({ mode: "number" }).notNull(),
});
