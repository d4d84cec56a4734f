import {
	bigint,
	customType,
	date,
	integer,
	pgTable,
	primaryKey,
	smallint,
	text,
	timestamp,
	uuid,
} from "drizzle-orm/pg-core";

const bytes = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });
const moment = (name: string) => timestamp(name, { withTimezone: true });
const count = (name: string) => bigint(name, { mode: "number" }).notNull().default(0);

/**
 * A closed UTC day of the ledger: its sums, a hash of its rows, and a seal (a hash over both and the previous day's
 * seal). The SQL function `books_seal` writes each day once; `closed-days.md` says what is hashed.
 */
export const sealedDay = pgTable("sealed_day", {
	day: date({ mode: "string" }).primaryKey(),
	/** Settled requests, without those that an operator declared lost: a settlement may still replace these. */
	usageRows: count("usage_rows"),
	chargedNanoUsd: count("charged_nano_usd"),
	writtenOffNanoUsd: count("written_off_nano_usd"),
	usageHash: bytes("usage_hash").notNull(),
	entryRows: count("entry_rows"),
	topUpNanoUsd: count("top_up_nano_usd"),
	refundNanoUsd: count("refund_nano_usd"),
	/** Sum of adjustments, including promotional credit. */
	adjustmentNanoUsd: count("adjustment_nano_usd"),
	disputeNanoUsd: count("dispute_nano_usd"),
	creditNoteNanoUsd: count("credit_note_nano_usd"),
	entryHash: bytes("entry_hash").notNull(),
	/** Sums of grants to leases and of returns from leases. They belong to no customer's history. */
	grantedNanoUsd: count("granted_nano_usd"),
	returnedNanoUsd: count("returned_nano_usd"),
	/** SHA-256 hash of all columns above and of the previous day's seal. */
	seal: bytes("seal").notNull(),
	sealedAt: moment("sealed_at").notNull().defaultNow(),
	/** When the day's rows were last verified against the seal. */
	verifiedAt: moment("verified_at"),
	/** How the rows differed from the seal at that time; null if they matched. */
	problem: text(),
	/** When the day's archive files were last found complete; null: never. */
	archivedAt: moment("archived_at"),
});

/** Progress of sealing; one row, created with the first day. Sealed rows are summed in the tables `sealed_…`. */
export const sealCursor = pgTable("seal_cursor", {
	id: smallint().primaryKey(),
	/** Next day to seal. */
	day: date({ mode: "string" }).notNull(),
	/** Time from which ledger entries are not sealed yet. */
	entriesFrom: moment("entries_from").notNull(),
	/** New rows get no earlier time, even if the database's clock is set back, so sealed days stay complete. */
	closedUntil: moment("closed_until").notNull(),
	/** Last settled request that is included in the next day's sums, followed by these sums so far. */
	usageAt: moment("usage_at").notNull(),
	usageId: uuid("usage_id").notNull(),
	usageRows: count("usage_rows"),
	chargedNanoUsd: count("charged_nano_usd"),
	writtenOffNanoUsd: count("written_off_nano_usd"),
	usageHash: bytes("usage_hash").notNull(),
	/** Last lease operation that is included in the next day's sums, followed by these sums so far. */
	opAt: moment("op_at").notNull(),
	opId: uuid("op_id").notNull(),
	grantedNanoUsd: count("granted_nano_usd"),
	returnedNanoUsd: count("returned_nano_usd"),
});

/** Sums over a lease's rows in sealed days. Deleted once the lease itself is sealed. */
export const sealedLease = pgTable(
	"sealed_lease",
	{
		budgetId: text("budget_id").notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		grantedNanoUsd: count("granted_nano_usd"),
		returnedNanoUsd: count("returned_nano_usd"),
		chargedNanoUsd: count("charged_nano_usd"),
	},
	(table) => [primaryKey({ columns: [table.budgetId, table.instanceId, table.epoch] })],
);

export const sealedBudget = pgTable("sealed_budget", {
	budgetId: text("budget_id").primaryKey(),
	/** Sum of the budget's sealed ledger entries; 0 for a key's. */
	entriesNanoUsd: count("entries_nano_usd"),
	/** Spending of the budget's sealed leases. */
	spentNanoUsd: count("spent_nano_usd"),
	/** Part of `spent_nano_usd` whose leases were deleted. */
	removedNanoUsd: count("removed_nano_usd"),
	/** How the rows differed from the sums at the last check; null if they matched. */
	problem: text(),
});

/** Progress of the current pass that verifies sealed days; one row. */
export const sealRound = pgTable("seal_round", {
	id: smallint().primaryKey(),
	day: date({ mode: "string" }).notNull(),
	usageAt: moment("usage_at").notNull(),
	usageId: uuid("usage_id").notNull(),
	usageRows: count("usage_rows"),
	chargedNanoUsd: count("charged_nano_usd"),
	writtenOffNanoUsd: count("written_off_nano_usd"),
	usageHash: bytes("usage_hash").notNull(),
	/** Last budget that was compared. Budgets are compared after the last day of the pass. */
	budgetId: text("budget_id").notNull().default(""),
	startedAt: moment("started_at").notNull().defaultNow(),
});
