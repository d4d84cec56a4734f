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
 * A day (UTC) of the books that nothing can be written into any more: what it came to, a hash over its rows, and a seal
 * over both and the seal of the day before. `books_seal` writes it, once; README.md says what is hashed.
 */
export const sealedDay = pgTable("sealed_day", {
	day: date({ mode: "string" }).primaryKey(),
	/** Settled requests, but for those that were attested as lost at no charge: they may still be replaced. */
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
	/** Grants and returns of leases: sums alone, they are no part of anybody's history. */
	grantedNanoUsd: count("granted_nano_usd"),
	returnedNanoUsd: count("returned_nano_usd"),
	/** SHA-256 over all of the above and the seal of the day before. */
	seal: bytes("seal").notNull(),
	sealedAt: moment("sealed_at").notNull().defaultNow(),
	/** When its rows were last read again. */
	verifiedAt: moment("verified_at"),
	/** What they did not agree with; null if nothing. */
	problem: text(),
	/** When its files were last seen in the archive, whole; null: never. */
	archivedAt: moment("archived_at"),
});

/** How far the seals go, to the row; one row, made with the first day. What lies before is in `sealed_…`, the rest is open. */
export const sealCursor = pgTable("seal_cursor", {
	id: smallint().primaryKey(),
	/** The day that is sealed next. */
	day: date({ mode: "string" }).notNull(),
	/** From when on entries of the ledger are open. */
	entriesFrom: moment("entries_from").notNull(),
	/** Nothing is recorded at a moment before this one, whatever the server's clock says. */
	closedUntil: moment("closed_until").notNull(),
	/** The last settled request that is taken in, and what the day comes to so far. */
	usageAt: moment("usage_at").notNull(),
	usageId: uuid("usage_id").notNull(),
	usageRows: count("usage_rows"),
	chargedNanoUsd: count("charged_nano_usd"),
	writtenOffNanoUsd: count("written_off_nano_usd"),
	usageHash: bytes("usage_hash").notNull(),
	/** The same of operations on leases. */
	opAt: moment("op_at").notNull(),
	opId: uuid("op_id").notNull(),
	grantedNanoUsd: count("granted_nano_usd"),
	returnedNanoUsd: count("returned_nano_usd"),
});

/** What the sealed rows of a lease come to, while the lease is not sealed itself. */
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

/** What the sealed rows of a budget come to. */
export const sealedBudget = pgTable("sealed_budget", {
	budgetId: text("budget_id").primaryKey(),
	/** The sum of its sealed ledger entries; 0 for a key's. */
	entriesNanoUsd: count("entries_nano_usd"),
	/** What its sealed leases have spent. */
	spentNanoUsd: count("spent_nano_usd"),
	/** The part of that whose leases are removed. */
	removedNanoUsd: count("removed_nano_usd"),
	/** What its rows did not agree with when they were last read again; null if nothing. */
	problem: text(),
});

/** How far the present round of reading sealed days again has come; one row. */
export const sealRound = pgTable("seal_round", {
	id: smallint().primaryKey(),
	day: date({ mode: "string" }).notNull(),
	usageAt: moment("usage_at").notNull(),
	usageId: uuid("usage_id").notNull(),
	usageRows: count("usage_rows"),
	chargedNanoUsd: count("charged_nano_usd"),
	writtenOffNanoUsd: count("written_off_nano_usd"),
	usageHash: bytes("usage_hash").notNull(),
	/** Behind the last day come the budgets: the last one that was looked at. */
	budgetId: text("budget_id").notNull().default(""),
	startedAt: moment("started_at").notNull().defaultNow(),
});
