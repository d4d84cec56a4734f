/** The tables of accounts, projects, keys and their limits. */
import { sql } from "drizzle-orm";
import { bigint, boolean, index, integer, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import type { ManagementScope } from "./management-scope.ts";

const moment = (name: string) => timestamp(name, { withTimezone: true });

const limits = () => ({
	/** Null: no cap. The limit in force is the budget's. */
	capNanoUsd: bigint("cap_nano_usd", { mode: "number" }),
	capPeriod: text("cap_period", { enum: ["lifetime", "day", "week", "month"] })
		.notNull()
		.default("lifetime"),
	/** Model ids; empty means all. */
	models: jsonb().$type<readonly string[]>().notNull().default(sql`'[]'::jsonb`),
	/** Of a project: for all its keys together. */
	requestsPerMinute: integer("requests_per_minute"),
	concurrencyMax: integer("concurrency_max"),
});

/** What is stored of a secret. */
const secretParts = () => ({
	/** HMAC-SHA-256 of the secret under the pepper, in hex. */
	digest: text().notNull().unique(),
	/** The displayable part of the secret: its beginning and its last four characters. */
	prefix: text().notNull(),
	lastFour: text("last_four").notNull(),
});

/** A paying customer. The account's credit is the budget of the same id. */
export const account = pgTable("account", {
	/** `acc_…` */
	id: text().primaryKey(),
	email: text().notNull().unique(),
	name: text().notNull(),
	state: text({ enum: ["active", "suspended"] })
		.notNull()
		.default("active"),
	/** Null until a member of the account signed in; an operator's command counts as signing in. */
	signedInAt: moment("signed_in_at"),
	/** True once a top-up of at least USD 100 was confirmed; never goes back. */
	toppedUp: boolean("topped_up").notNull().default(false),
	/** The time zone of its caps' days, weeks and months: an IANA name. */
	timeZone: text("time_zone").notNull().default("UTC"),
	createdAt: moment("created_at").notNull().defaultNow(),
});

/** Keys with a common budget: their spending counts against the project's cap, too. */
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
		...limits(),
		createdAt: moment("created_at").notNull().defaultNow(),
		archivedAt: moment("archived_at"),
	},
	(table) => [index("project_account").on(table.accountId)],
);

/** An API key. Its lifetime cap is the budget of the same id; each period of a renewing cap has its own. */
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
		/** Null: its account's own. */
		projectId: text("project_id").references(() => project.id),
		/** When the key ends: its expiry, or the end of a rotated key's grace. */
		expiresAt: moment("expires_at"),
		/** True for a read-only key; its cap is 0. */
		readsOnly: boolean("reads_only").notNull().default(false),
		/** The key that replaces this one after a rotation. */
		replacedBy: text("replaced_by"),
		/** Coarse: the hourly sums write it. */
		lastUsedAt: moment("last_used_at"),
		/** The person who made it or its predecessor, for members who see only their own keys. */
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
 * An instance's share of a key's limit; the shares never pass the limit together. A lost instance's share goes on
 * counting for its last minutes, see `../db/functions/limits.sql`.
 */
export const keyShare = pgTable(
	"key_share",
	{
		keyId: text("key_id").notNull(),
		/** Requests a minute, or concurrent requests. */
		kind: text({ enum: ["rate", "running"] }).notNull(),
		instanceId: text("instance_id").notNull(),
		epoch: integer().notNull(),
		amount: integer().notNull(),
		/** The instance's own number of the request: an older one changes nothing. */
		seq: bigint({ mode: "number" }).notNull(),
		at: moment("at").notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.keyId, table.kind, table.instanceId, table.epoch] })],
);

/** A key of the management interface. It belongs to the operators and to no account; the secret is stored nowhere. */
export const managementKey = pgTable("management_key", {
	/** `mgk_…`: the actor in the audit log. */
	id: text().primaryKey(),
	name: text().notNull(),
	...secretParts(),
	scopes: jsonb().$type<readonly ManagementScope[]>().notNull().default(sql`'[]'::jsonb`),
	expiresAt: moment("expires_at"),
	/** The operator with whose rights it acts, or `cli`. */
	madeBy: text("made_by").notNull(),
	createdAt: moment("created_at").notNull().defaultNow(),
	/** Coarse: to the minute. */
	lastUsedAt: moment("last_used_at"),
	revokedAt: moment("revoked_at"),
});

/** Token of a repeatable creation, for a day: a client that sends it again gets the first result. */
export const managementClaim = pgTable("management_claim", {
	/** Keyed digest of the management key, or of the page's user, and the client's token. */
	id: text().primaryKey(),
	/** Keyed digest of the request's content. */
	request: text().notNull(),
	/** The id of the new object, chosen before it is made. */
	subject: text().notNull(),
	at: moment("at").notNull().defaultNow(),
});
