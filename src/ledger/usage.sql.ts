import { sql } from "drizzle-orm";
import {
	bigint,
	boolean,
	check,
	index,
	integer,
	type PgColumnBuilderBase,
	pgTable,
	real,
	text,
	timestamp,
	uuid,
} from "drizzle-orm/pg-core";
import { USAGE_FIELD_NAMES, type UsageFieldName, usageField } from "./usage-fields.ts";

const BUILDERS = {
	...{ uuid, text, boolean, integer, real },
	"text[]": (column: string) => text(column).array(),
	bigint: (column: string) => bigint(column, { mode: "number" }),
	timestamptz: (column: string) => timestamp(column, { withTimezone: true }),
};

/** Columns with the default 0, in addition to the counts. */
const ZERO: ReadonlySet<UsageFieldName> = new Set(["off", "ms"]);

function columnOf(name: UsageFieldName) {
	const { column, type, nullable, optional, count } = usageField(name);
	const built = BUILDERS[type](column);
	if (name === "id") return built.primaryKey();
	if (nullable || optional) return built;
	return count || ZERO.has(name) ? (built.notNull() as ReturnType<typeof integer>).default(0) : built.notNull();
}

const settled = Object.fromEntries(USAGE_FIELD_NAMES.map((name) => [name, columnOf(name)])) as unknown as Record<
	UsageFieldName,
	PgColumnBuilderBase
>;

/** A settled request and its charge. Written once per id. Contains no prompt or answer. */
export const usageEvent = pgTable(
	"usage_event",
	{
		...settled,
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		projectId: text("project_id"),
		settledAt: timestamp("settled_at", { withTimezone: true }).notNull().default(sql`books_now()`),
	},
	(table) => [
		index("usage_event_account").on(table.account, table.at),
		index("usage_event_key").on(table.key, table.at),
		/** Index that finds recently settled rows for the hourly sums. */
		index("usage_event_settled").on(table.settledAt),
		/** Index that finds the requests of a batch. */
		index("usage_event_batch").on(table.batch, table.at, table.id).where(sql`${table.batch} is not null`),
		/** Index that finds the requests of a project. */
		index("usage_event_project").on(table.projectId, table.at, table.id).where(sql`${table.projectId} is not null`),
		check("usage_charged_within_reserved", sql`${table.charged} >= 0 and ${table.reserved} >= ${table.charged}`),
	],
);

/** Requests that were running at the last flush, with their reserved amounts; for display and lost journals. */
export const reservation = pgTable(
	"reservation",
	{
		requestId: uuid("request_id").primaryKey(),
		accountId: text("account_id").notNull(),
		keyId: text("key_id").notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		model: text().notNull(),
		reservedNanoUsd: bigint("reserved_nano_usd", { mode: "number" }).notNull(),
		admittedAt: timestamp("admitted_at", { withTimezone: true }).notNull(),
		/** Project of the key at the request's admission; null: none. The key may have moved to another project since. */
		projectId: text("project_id"),
	},
	(table) => [
		index("reservation_account").on(table.accountId),
		index("reservation_instance").on(table.instanceId, table.epoch),
	],
);
