import { sql } from "drizzle-orm";
import { bigint, customType, index, integer, pgTable, text, timestamp, uuid } from "drizzle-orm/pg-core";

const bytea = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });

/**
 * `Idempotency-Key`s used within a day. Neither the header nor the prompt can be derived from a row. Decrypting the
 * answer requires the customer's API key and the header, which are not stored (`seal.ts`).
 */
export const idempotencyClaim = pgTable(
	"idempotency_claim",
	{
		/** SHA-256, in hex, of the API key's id and the header. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		/** Digest of path and body, keyed with a secret that is not stored. */
		proof: text().notNull(),
		/** First of 256 consecutive request ids, reserved for the request's attempts; its last byte is 0. */
		requestId: uuid("request_id").notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		/** unkept: answered and charged, but the answer was too large or was removed for newer answers. */
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

export const idempotencySpace = pgTable("idempotency_space", {
	accountId: text("account_id").primaryKey(),
	bytes: bigint({ mode: "number" }).notNull(),
});
