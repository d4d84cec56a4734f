/** Tables of accounts, projects, keys and their limits. */
import { sql } from "drizzle-orm";
import { bigint, boolean, index, integer, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import type { Agreement } from "../catalog/agreements.ts";
import type { ManagementScope } from "./management-scope.ts";

const moment = (name: string) => timestamp(name, { withTimezone: true });

const limits = () => ({
	/** The cap for display; null: none. The limit of the budget is what requests reserve from. */
	capNanoUsd: bigint("cap_nano_usd", { mode: "number" }),
	capPeriod: text("cap_period", { enum: ["lifetime", "day", "week", "month"] })
		.notNull()
		.default("lifetime"),
	/** Ids of the models that may be used; empty: all. */
	models: jsonb().$type<readonly string[]>().notNull().default(sql`'[]'::jsonb`),
	/** For a project, the limit of all its keys together. */
	requestsPerMinute: integer("requests_per_minute"),
	concurrencyMax: integer("concurrency_max"),
	/** Limit of prompt and completion tokens together. */
	tokensPerMinute: integer("tokens_per_minute"),
});

/** Columns of a secret, which is stored only as a digest. */
const secretParts = () => ({
	/** HMAC-SHA-256 of the secret, keyed with the pepper, in hex. */
	digest: text().notNull().unique(),
	/** Parts of the secret that are displayed: its beginning and its last four characters. */
	prefix: text().notNull(),
	lastFour: text("last_four").notNull(),
});

/** A paying customer. The account's credit is the budget with the same id. */
export const account = pgTable(
	"account",
	{
		/** Id of the account: `acc_…`. */
		id: text().primaryKey(),
		email: text().notNull().unique(),
		name: text().notNull(),
		state: text({ enum: ["active", "suspended"] })
			.notNull()
			.default("active"),
		/** First sign-in of a member, or when an operator vouched for the account; null: neither yet. */
		signedInAt: moment("signed_in_at"),
		/** True once a top-up of at least USD 100 was confirmed. Never becomes false again. */
		toppedUp: boolean("topped_up").notNull().default(false),
		/** IANA name of the time zone in which the account's caps renew. */
		timeZone: text("time_zone").notNull().default("UTC"),
		/** Tags by which `tollgate.yaml` sets limits and shows models; only operators change them. */
		tags: jsonb().$type<readonly string[]>().notNull().default(sql`'[]'::jsonb`),
		/** Null: the limit that `tollgate.yaml` sets for the account's tags, if any. */
		tokensPerMinute: integer("tokens_per_minute"),
		/** Price agreements that are in force or planned (`../billing/price-agreements.ts`). */
		agreements: jsonb().$type<readonly Agreement[]>().notNull().default(sql`'[]'::jsonb`),
		createdAt: moment("created_at").notNull().defaultNow(),
	},
	(table) => [index("account_created").on(table.createdAt)],
);

/** A group of keys whose spending also counts against the project's cap. */
export const project = pgTable(
	"project",
	{
		/** Id of the project: `proj_…`. */
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
		/** Id of the key: `key_…`. */
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
		projectId: text("project_id").references(() => project.id),
		/** Time after which the key is refused: its expiry, or the end of the grace period after a rotation. */
		expiresAt: moment("expires_at"),
		/** True for a read-only key; its cap is 0. */
		readsOnly: boolean("reads_only").notNull().default(false),
		/** Key that replaced this one in a rotation. */
		replacedBy: text("replaced_by"),
		/** Approximate time, because it is written together with the hourly sums. */
		lastUsedAt: moment("last_used_at"),
		/** Person who created the key, or the key from which it was rotated. Some members see only their own keys. */
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
 * An instance's share of a key's limit. All shares together never exceed the limit. A dead instance's share counts for
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
		/** Number of the request of the instance that wrote this row. Requests with a lower number change nothing. */
		seq: bigint({ mode: "number" }).notNull(),
		at: moment("at").notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.keyId, table.kind, table.instanceId, table.epoch] })],
);

/** A key of the management interface. It belongs to an operator, not to an account. Only its digest is stored. */
export const managementKey = pgTable("management_key", {
	/** `mgk_…`. The same id is the actor in the audit log. */
	id: text().primaryKey(),
	name: text().notNull(),
	...secretParts(),
	scopes: jsonb().$type<readonly ManagementScope[]>().notNull().default(sql`'[]'::jsonb`),
	expiresAt: moment("expires_at"),
	/** Id of the operator whose rights the key has, or `cli`. */
	madeBy: text("made_by").notNull(),
	createdAt: moment("created_at").notNull().defaultNow(),
	/** Approximate time, to the minute. */
	lastUsedAt: moment("last_used_at"),
	revokedAt: moment("revoked_at"),
});

/** Idempotency token of a creation, kept for a day, so that a repetition gets the first result. */
export const managementClaim = pgTable("management_claim", {
	/** Keyed digest of the token and its sender: a management key, or the user of a page. */
	id: text().primaryKey(),
	/** Keyed digest of the request's content, by which a different request is recognized. */
	request: text().notNull(),
	/** Id of the created object, chosen before its creation. */
	subject: text().notNull(),
	at: moment("at").notNull().defaultNow(),
});
