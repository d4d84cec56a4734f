import { sql } from "drizzle-orm";
import { bigint, check, date, index, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * A limit from which requests reserve: an account's credit, the lifetime cap of a key or project, or a period of a
 * renewing cap. Its id is that of the account, key or project; for a period `<owner>:<period>:<first day>`.
 *
 * `drawn` is what instances hold in open leases plus what was spent: Σ open (granted − returned) + Σ closed settled,
 * plus late settlements. So `available = limit − drawn`, and a settlement does not change this row.
 */
export const budget = pgTable(
	"budget",
	{
		id: text().primaryKey(),
		kind: text({ enum: ["account", "key", "project"] }).notNull(),
		/** Account of the budget; for credit, the account itself. */
		accountId: text("account_id").notNull(),
		/** Account: sum of its ledger entries. Key and project: the cap; null: none. */
		limitNanoUsd: bigint("limit_nano_usd", { mode: "number" }),
		/** Control entry with which the cap began to renew. After it requests reserve from the cap's periods instead. */
		liftSeq: bigint("lift_seq", { mode: "number" }),
		/** For periods: owner of the cap, kind of period, and first day in the account's time zone. */
		ownerId: text("owner_id"),
		period: text({ enum: ["day", "week", "month"] }),
		periodStart: date("period_start", { mode: "string" }),
		drawnNanoUsd: bigint("drawn_nano_usd", { mode: "number" }).notNull().default(0),
		/** Cost of late settlements above the available amount. The operator bears it. */
		writtenOffNanoUsd: bigint("written_off_nano_usd", { mode: "number" }).notNull().default(0),
	},
	(table) => [
		index("budget_account").on(table.accountId),
		index("budget_period").on(table.ownerId, table.periodStart).where(sql`${table.ownerId} is not null`),
		check("budget_drawn_not_negative", sql`${table.drawnNanoUsd} >= 0`),
		check("budget_account_has_limit", sql`${table.kind} <> 'account' or ${table.limitNanoUsd} is not null`),
	],
);

/** Movements of an account's credit other than usage. Append-only; the sum is the limit of the account's budget. */
export const ledgerEntry = pgTable(
	"ledger_entry",
	{
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		kind: text({ enum: ["top_up", "refund", "adjustment", "promotion", "dispute", "credit_note"] }).notNull(),
		/** Positive amounts add credit. */
		amountNanoUsd: bigint("amount_nano_usd", { mode: "number" }).notNull(),
		/** Unique reference of the source: a payment, a bank transfer, a recovered request. */
		sourceRef: text("source_ref").notNull().unique(),
		/** Origin of the entry: an operator's id, `stripe`, `cli` or `recovery`. */
		actor: text().notNull(),
		note: text().notNull().default(""),
		createdAt: timestamp("created_at", { withTimezone: true }).notNull().default(sql`books_now()`),
	},
	(table) => [
		index("ledger_entry_account").on(table.accountId, table.createdAt),
		/** Index for sealing days. */
		index("ledger_entry_created").on(table.createdAt),
	],
);
