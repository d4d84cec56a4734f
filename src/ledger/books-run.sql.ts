import { boolean, index, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type { BooksCheck } from "./reconciler.ts";

export const reconciliationRun = pgTable(
	"reconciliation_run",
	{
		/** `rec_…`, sortable by creation time. */
		id: text().primaryKey(),
		at: timestamp({ withTimezone: true }).notNull().defaultNow(),
		ok: boolean().notNull(),
		/** Id of the user who started the check, or `timer`. */
		by: text().notNull(),
		checks: jsonb().$type<readonly BooksCheck[]>().notNull(),
	},
	(table) => [index("reconciliation_run_broken").on(table.ok, table.id)],
);
