import { sql } from "drizzle-orm";
import { bigint, check, date, index, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/**
 * A limit from which requests reserve: an account's credit, the lifetime cap of a key or project, or one period of a
 * renewing cap. The id of a budget is that of the account, key or project; for a period `<owner>:<period>:<first day>`.
 * `drawn` is the credit in open leases plus the spending of closed leases: Σ open (granted − returned) + Σ closed
 * settled, plus late settlements. So `available = limit − drawn`, and a settlement does not change this row.
 */
export const budget = pgTable(
	"budget",
	{
		id: text().primaryKey(),
		kind: text({ enum: ["account", "key", "project"] }).notNull(),
		/** Account that pays for the budget's requests; for an account's credit, that account. */
		accountId: text("account_id").notNull(),
		/** For an account: sum of its ledger entries. For a key or project: the cap, or null without one. */
		limitNanoUsd: bigint("limit_nano_usd", { mode: "number" }),
		/** Control entry from which on the cap renews. Later requests reserve from the cap's periods instead. */
		liftSeq: bigint("lift_seq", { mode: "number" }),
		/** For a period of a renewing cap: cap's owner, kind of period, first day in the account's time zone. */
		ownerId: text("owner_id"),
		period: text({ enum: ["day", "week", "month"] }),
		periodStart: date("period_start", { mode: "string" }),
		drawnNanoUsd: bigint("drawn_nano_usd", { mode: "number" }).notNull().default(0),
		/** Cost of late settlements that the available credit did not cover. The operator bears it. */
		writtenOffNanoUsd: bigint("written_off_nano_usd", { mode: "number" }).notNull().default(0),
	},
	(table) => [
		index("budget_account").on(table.accountId),
		index("budget_period").on(table.ownerId, table.periodStart).where(sql`${table.ownerId} is not null`),
		check("budget_drawn_not_negative", sql`${table.drawnNanoUsd} >= 0`),
		check("budget_account_has_limit", sql`${table.kind} <> 'account' or ${table.limitNanoUsd} is not null`),
	],
);

/** Movements of an account's credit other than usage. Append-only; their sum is the limit of the account's budget. */
export const ledgerEntry = pgTable(
	"ledger_entry",
	{
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		kind: text({ enum: ["top_up", "refund", "adjustment", "promotion", "dispute", "credit_note"] }).notNull(),
		/** Positive if the entry adds credit, negative if it removes credit. */
		amountNanoUsd: bigint("amount_nano_usd", { mode: "number" }).notNull(),
		/** Unique reference of what caused the entry: a payment, a bank transfer, a recovered request. */
		sourceRef: text("source_ref").notNull().unique(),
		/** Who or what made the entry: an operator's id, `stripe`, `cli` or `recovery`. */
		actor: text().notNull(),
		note: text().notNull().default(""),
		createdAt: timestamp("created_at", { withTimezone: true }).notNull().default(sql`books_now()`),
	},
	(table) => [
		index("ledger_entry_account").on(table.accountId, table.createdAt),
		/** Index that finds the entries of a day to be sealed. */
		index("ledger_entry_created").on(table.createdAt),
	],
);
