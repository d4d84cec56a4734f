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
 * A closed day (UTC) of the books: its sums, a hash over its rows, and a seal over both and the previous day's seal.
 * `books_seal` writes it, once; closed-days.md says what is hashed.
 */
export const sealedDay = pgTable("sealed_day", {
	day: date({ mode: "string" }).primaryKey(),
	/** Settled requests, without those attested as lost at no charge: a settlement may still replace these. */
	usageRows: count("usage_rows"),
	chargedNanoUsd: count("charged_nano_usd"),
	writtenOffNanoUsd: count("written_off_nano_usd"),
	usageHash: bytes("usage_hash").notNull(),
	entryRows: count("entry_rows"),
	topUpNanoUsd: count("top_up_nano_usd"),
	refundNanoUsd: count("refund_nano_usd"),
	adjustmentNanoUsd: count("adjustment_nano_usd"),
	disputeNanoUsd: count("dispute_nano_usd"),
	creditNoteNanoUsd: count("credit_note_nano_usd"),
	entryHash: bytes("entry_hash").notNull(),
	/** Sums of grants and returns of leases; no customer's history contains them. */
	grantedNanoUsd: count("granted_nano_usd"),
	returnedNanoUsd: count("returned_nano_usd"),
	/** SHA-256 over all of the above and the seal of the day before. */
	seal: bytes("seal").notNull(),
	sealedAt: moment("sealed_at").notNull().defaultNow(),
	/** When its rows were last read again. */
	verifiedAt: moment("verified_at"),
	/** How they differed from the row; null if they agreed. */
	problem: text(),
	/** When its files were last seen complete in the archive; null: never. */
	archivedAt: moment("archived_at"),
});

/**
 * Position of the seals. One row, made with the first day. Rows before it are in `sealed_…`, all later ones are open.
 */
export const sealCursor = pgTable("seal_cursor", {
	id: smallint().primaryKey(),
	/** The day that is sealed next. */
	day: date({ mode: "string" }).notNull(),
	/** Ledger entries are open from here on. */
	entriesFrom: moment("entries_from").notNull(),
	/** No row is recorded with an earlier moment, whatever the server's clock says. */
	closedUntil: moment("closed_until").notNull(),
	/** The last settled request that was added, and the day's sums so far. */
	usageAt: moment("usage_at").notNull(),
	usageId: uuid("usage_id").notNull(),
	usageRows: count("usage_rows"),
	chargedNanoUsd: count("charged_nano_usd"),
	writtenOffNanoUsd: count("written_off_nano_usd"),
	usageHash: bytes("usage_hash").notNull(),
	/** The same for operations on leases. */
	opAt: moment("op_at").notNull(),
	opId: uuid("op_id").notNull(),
	grantedNanoUsd: count("granted_nano_usd"),
	returnedNanoUsd: count("returned_nano_usd"),
});

/** Sums of a lease's sealed rows, while the lease itself is not sealed. */
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
	/** The sum of its sealed ledger entries; 0 for a key's. */
	entriesNanoUsd: count("entries_nano_usd"),
	/** What its sealed leases have spent. */
	spentNanoUsd: count("spent_nano_usd"),
	/** The part of that whose leases are removed. */
	removedNanoUsd: count("removed_nano_usd"),
	/** How its rows differed when they were last read again; null if they agreed. */
	problem: text(),
});

/** Position of the present round of reading sealed days again; one row. */
export const sealRound = pgTable("seal_round", {
	id: smallint().primaryKey(),
	day: date({ mode: "string" }).notNull(),
	usageAt: moment("usage_at").notNull(),
	usageId: uuid("usage_id").notNull(),
	usageRows: count("usage_rows"),
	chargedNanoUsd: count("charged_nano_usd"),
	writtenOffNanoUsd: count("written_off_nano_usd"),
	usageHash: bytes("usage_hash").notNull(),
	/** After the last day come the budgets: the last one compared. */
	budgetId: text("budget_id").notNull().default(""),
	startedAt: moment("started_at").notNull().defaultNow(),
});
