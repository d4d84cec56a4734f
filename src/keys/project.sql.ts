import { sql } from "drizzle-orm";
import { bigint, index, integer, jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { account } from "./account.sql.ts";

/**
 * Keys of an account with a common budget: their spending counts against the project's cap, too. Its lifetime cap is
 * the budget of the same id.
 */
export const project = pgTable(
	"project",
	{
		/** `proj_…` */
		id: text().primaryKey(),
		accountId: text("account_id")
			.notNull()
			.references(() => account.id),
		name: text().notNull(),
		/** An archived project's state refuses its keys, whatever their own state is. */
		state: text({ enum: ["active", "archived"] })
			.notNull()
			.default("active"),
		/** Null: no cap. */
		capNanoUsd: bigint("cap_nano_usd", { mode: "number" }),
		capPeriod: text("cap_period", { enum: ["lifetime", "day", "week", "month"] })
			.notNull()
			.default("lifetime"),
		/** Ids of the models that its keys may use; empty means all. */
		models: jsonb().$type<readonly string[]>().notNull().default(sql`'[]'::jsonb`),
		/** For all its keys together. */
		requestsPerMinute: integer("requests_per_minute"),
		concurrencyMax: integer("concurrency_max"),
		createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
		archivedAt: timestamp("archived_at", { withTimezone: true }),
	},
	(table) => [index("project_account").on(table.accountId)],
);
