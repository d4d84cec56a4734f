import { sql } from "drizzle-orm";
import { bigint, customType, index, integer, pgTable, text, timestamp, uuid } from "drizzle-orm/pg-core";

const bytea = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });

/**
 * An `Idempotency-Key` that was used, for a day. Neither the header nor anything of a prompt can be read from it, and
 * the answer opens only with the customer's own secret and that header, neither of which is stored (`seal.ts`).
 */
export const idempotencyClaim = pgTable(
	"idempotency_claim",
	{
		/** SHA-256 of the API key's id and the header, hex. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		/** Stands for path and body; under a key that is not stored. */
		proof: text().notNull(),
		/** The first of the 256 ids that its attempts may have: its last byte is 0. */
		requestId: uuid("request_id").notNull(),
		/** Who serves it. */
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		/** unkept: answered and charged, but the answer is too large, or older ones have made room. */
		state: text({ enum: ["running", "answered", "unkept"] })
			.notNull()
			.default("running"),
		/** Sealed. */
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

/** What an account's kept answers take. */
export const idempotencySpace = pgTable("idempotency_space", {
	accountId: text("account_id").primaryKey(),
	bytes: bigint({ mode: "number" }).notNull(),
});
