import { sql } from "drizzle-orm";
import { bigint, check, date, index, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * Anything with a hard limit from which requests reserve: an account's credit, a key's or a project's lifetime cap, the
 * present period of a renewing cap. The id is the account's, key's or project's own; for a period
 * `<owner>:<period>:<first day>`.
 *
 * `drawn` is what instances hold in open leases plus what was spent: Σ open (granted − returned) + Σ closed settled,
 * plus late settlements. So `available = limit − drawn`, and a settlement does not touch this row.
 */
export const budget = pgTable(
	"budget",
	{
		id: text().primaryKey(),
		kind: text({ enum: ["account", "key", "project"] }).notNull(),
		/** The account that it belongs to; an account's own id for its credit. */
		accountId: text("account_id").notNull(),
		/** Account: the sum of its ledger entries. Key and project: the cap, null for none. */
		limitNanoUsd: bigint("limit_nano_usd", { mode: "number" }),
		/**
		 * The limit ends when all live instances have applied this control entry: then they reserve from the cap's periods.
		 */
		liftSeq: bigint("lift_seq", { mode: "number" }),
		/** For periods: the owner of the cap, the kind of period, its first day in the account's time zone. */
		ownerId: text("owner_id"),
		period: text({ enum: ["day", "week", "month"] }),
		periodStart: date("period_start", { mode: "string" }),
		drawnNanoUsd: bigint("drawn_nano_usd", { mode: "number" }).notNull().default(0),
		/** Cost of late settlements beyond what was available: the operator's write-off. */
		writtenOffNanoUsd: bigint("written_off_nano_usd", { mode: "number" }).notNull().default(0),
	},
	(table) => [
		index("budget_account").on(table.accountId),
		index("budget_period").on(table.ownerId, table.periodStart).where(sql`${table.ownerId} is not null`),
		check("budget_drawn_not_negative", sql`${table.drawnNanoUsd} >= 0`),
		check("budget_account_has_limit", sql`${table.kind} <> 'account' or ${table.limitNanoUsd} is not null`),
	],
);

/** Every movement of an account's credit that is not usage. Append-only; the sum is the budget's limit. */
export const ledgerEntry = pgTable(
	"ledger_entry",
	{
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		kind: text({ enum: ["top_up", "refund", "adjustment", "dispute", "credit_note"] }).notNull(),
		/** Positive adds credit. */
		amountNanoUsd: bigint("amount_nano_usd", { mode: "number" }).notNull(),
		/** Unique source: a payment, a transfer's reference, a recovered request. */
		sourceRef: text("source_ref").notNull().unique(),
		/** The actor: an operator's id, `stripe`, `cli`, `recovery`. */
		actor: text().notNull(),
		note: text().notNull().default(""),
		createdAt: timestamp("created_at", { withTimezone: true }).notNull().default(sql`books_now()`),
	},
	(table) => [
		index("ledger_entry_account").on(table.accountId, table.createdAt),
		/** For the seals of days. */
		index("ledger_entry_created").on(table.createdAt),
	],
);
