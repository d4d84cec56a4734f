/** Tables of accounts, projects, keys and their limits. */
import { sql } from "drizzle-orm";
import { bigint, boolean, index, integer, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import type { ManagementScope } from "./management-scope.ts";

const moment = (name: string) => timestamp(name, { withTimezone: true });

const limits = () => ({
	/** Null: no cap. The budget's limit is the one that is enforced. */
	capNanoUsd: bigint("cap_nano_usd", { mode: "number" }),
	capPeriod: text("cap_period", { enum: ["lifetime", "day", "week", "month"] })
		.notNull()
		.default("lifetime"),
	/** Ids of allowed models; empty: all. */
	models: jsonb().$type<readonly string[]>().notNull().default(sql`'[]'::jsonb`),
	/** A project's limit applies to all of its keys together. */
	requestsPerMinute: integer("requests_per_minute"),
	concurrencyMax: integer("concurrency_max"),
	/** Tokens of prompts and completions together. */
	tokensPerMinute: integer("tokens_per_minute"),
});

/** Columns for a secret, of which only a digest is stored. */
const secretParts = () => ({
	/** HMAC-SHA-256 of the secret under the pepper, in hex. */
	digest: text().notNull().unique(),
	/** Part of the secret for display: its beginning and its last four characters. */
	prefix: text().notNull(),
	lastFour: text("last_four").notNull(),
});

/** A paying customer. The account's credit is the budget of the same id. */
export const account = pgTable(
	"account",
	{
		/** `acc_…` */
		id: text().primaryKey(),
		email: text().notNull().unique(),
		name: text().notNull(),
		state: text({ enum: ["active", "suspended"] })
			.notNull()
			.default("active"),
		/** First sign-in of a member; null: none yet. An operator who vouches for the account sets it too. */
		signedInAt: moment("signed_in_at"),
		/** True once a top-up of at least USD 100 was confirmed; never false again. */
		toppedUp: boolean("topped_up").notNull().default(false),
		/** IANA name of the time zone in which the account's caps renew. */
		timeZone: text("time_zone").notNull().default("UTC"),
		/** Words of operators, by which `tollgate.yaml` chooses limits and shows models. */
		tags: jsonb().$type<readonly string[]>().notNull().default(sql`'[]'::jsonb`),
		/** Null: the limit of the account's tags in `tollgate.yaml`, if any. */
		tokensPerMinute: integer("tokens_per_minute"),
		createdAt: moment("created_at").notNull().defaultNow(),
	},
	(table) => [index("account_created").on(table.createdAt)],
);

/** A group of keys, whose spending also counts against the project's cap. */
export const project = pgTable(
	"project",
	{
		/** `proj_…` */
		id: text().primaryKey(),
		accountId: text("account_id")
			.notNull()
			.references(() => account.id),
		name: text().notNull(),
		/** Requests with keys of an archived project are refused. */
		state: text({ enum: ["active", "archived"] })
			.notNull()
			.default("active"),
		...limits(),
		createdAt: moment("created_at").notNull().defaultNow(),
		archivedAt: moment("archived_at"),
	},
	(table) => [index("project_account").on(table.accountId)],
);

/** An API key. Its lifetime cap is the budget with the same id; each period of a renewing cap has its own budget. */
export const apiKey = pgTable(
	"api_key",
	{
		/** `key_…` */
		id: text().primaryKey(),
		accountId: text("account_id")
			.notNull()
			.references(() => account.id),
		name: text().notNull(),
		...secretParts(),
		state: text({ enum: ["active", "revoked"] })
			.notNull()
			.default("active"),
		...limits(),
		/** Project of the key; null: none. */
		projectId: text("project_id").references(() => project.id),
		/** Last moment of the key: its expiry, or the end of the grace period after a rotation. */
		expiresAt: moment("expires_at"),
		/** True for a read-only key; its cap is 0. */
		readsOnly: boolean("reads_only").notNull().default(false),
		/** Key that replaced this one in a rotation. */
		replacedBy: text("replaced_by"),
		/** Approximate, because it is written with the hourly sums. */
		lastUsedAt: moment("last_used_at"),
		/** Person who created the key, or the key that it replaced. Some members see only their own keys. */
		madeBy: text("made_by"),
		createdAt: moment("created_at").notNull().defaultNow(),
		revokedAt: moment("revoked_at"),
	},
	(table) => [
		index("api_key_account").on(table.accountId),
		index("api_key_expires")
			.on(table.expiresAt)
			.where(sql`${table.state} = 'active' and ${table.expiresAt} is not null`),
		index("api_key_project").on(table.projectId).where(sql`${table.projectId} is not null`),
	],
);

/**
 * An instance's share of a key's limit; all shares together never exceed the limit. A dead instance's share counts for
 * two more minutes (`../db/functions/limits.sql`).
 */
export const keyShare = pgTable(
	"key_share",
	{
		keyId: text("key_id").notNull(),
		/** rate: requests per minute. running: concurrent requests. tokens: tokens per minute. */
		kind: text({ enum: ["rate", "running", "tokens"] }).notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		amount: integer().notNull(),
		/** Number of the instance's request that wrote this row; requests with a lower number change nothing. */
		seq: bigint({ mode: "number" }).notNull(),
		at: moment("at").notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.keyId, table.kind, table.instanceId, table.epoch] })],
);

/** A key of the management interface. It belongs to an operator, not to an account. Its secret is not stored. */
export const managementKey = pgTable("management_key", {
	/** `mgk_…`, also the actor in the audit log. */
	id: text().primaryKey(),
	name: text().notNull(),
	...secretParts(),
	scopes: jsonb().$type<readonly ManagementScope[]>().notNull().default(sql`'[]'::jsonb`),
	expiresAt: moment("expires_at"),
	/** Operator whose rights it has, or `cli`. */
	madeBy: text("made_by").notNull(),
	createdAt: moment("created_at").notNull().defaultNow(),
	/** Approximate, to the minute. */
	lastUsedAt: moment("last_used_at"),
	revokedAt: moment("revoked_at"),
});

/** Idempotency token of a creation, kept for a day: a repetition gets the first result. */
export const managementClaim = pgTable("management_claim", {
	/** Keyed digest of the token and of its sender: a management key, or the user of a page. */
	id: text().primaryKey(),
	/** Keyed digest of the request's content. */
	request: text().notNull(),
	/** Id of the new object, chosen before its creation. */
	subject: text().notNull(),
	at: moment("at").notNull().defaultNow(),
});
