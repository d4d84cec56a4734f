import { sql } from "drizzle-orm";
import {
	type AnyPgColumn,
	bigint,
	boolean,
	index,
	integer,
	pgTable,
	primaryKey,
	text,
	timestamp,
	uniqueIndex,
} from "drizzle-orm/pg-core";

const moment = (name: string) => timestamp(name, { withTimezone: true });

export const consoleUser = pgTable("console_user", {
	id: text().primaryKey(),
	name: text().notNull(),
	email: text().notNull().unique(),
	emailVerified: boolean("email_verified").notNull().default(false),
	image: text(),
	twoFactorEnabled: boolean("two_factor_enabled").notNull().default(false),
	/** True for operators of the service. Only the command line sets it. */
	operator: boolean().notNull().default(false),
	/** Language that the person chose; null: the browser's. */
	language: text(),
	createdAt: moment("created_at").notNull().defaultNow(),
	updatedAt: moment("updated_at").notNull().defaultNow(),
});

const userId = () =>
	text("user_id")
		.notNull()
		.references(() => consoleUser.id, { onDelete: "cascade" });

export const session = pgTable(
	"session",
	{
		id: text().primaryKey(),
		token: text().notNull().unique(),
		userId: userId(),
		expiresAt: moment("expires_at").notNull(),
		ipAddress: text("ip_address"),
		userAgent: text("user_agent"),
		/** When this session last entered the password again; null: never. */
		authenticatedAt: moment("authenticated_at"),
		/** `company_sign_in.revision` of a company session, which opens only that account; null for other sessions. */
		companyRevision: text("company_revision"),
		createdAt: moment("created_at").notNull().defaultNow(),
		updatedAt: moment("updated_at").notNull().defaultNow(),
	},
	(table) => [index("session_user").on(table.userId)],
);

/** Company sign-ins: a person has one identity per provider, and a provider's id belongs to one person. */
const ofCompany = (table: { providerId: AnyPgColumn }) => sql`${table.providerId} like 'company:%'`;

export const authAccount = pgTable(
	"auth_account",
	{
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		providerId: text("provider_id").notNull(),
		userId: userId(),
		accessToken: text("access_token"),
		refreshToken: text("refresh_token"),
		idToken: text("id_token"),
		accessTokenExpiresAt: moment("access_token_expires_at"),
		refreshTokenExpiresAt: moment("refresh_token_expires_at"),
		scope: text(),
		password: text(),
		createdAt: moment("created_at").notNull().defaultNow(),
		updatedAt: moment("updated_at").notNull().defaultNow(),
	},
	(table) => [
		index("auth_account_user").on(table.userId),
		uniqueIndex("auth_account_company").on(table.providerId, table.accountId).where(ofCompany(table)),
		uniqueIndex("auth_account_company_user").on(table.providerId, table.userId).where(ofCompany(table)),
	],
);

/** One-time values: for address verification, password reset, and the return from an identity provider. */
export const verification = pgTable(
	"verification",
	{
		id: text().primaryKey(),
		identifier: text().notNull(),
		value: text().notNull(),
		expiresAt: moment("expires_at").notNull(),
		createdAt: moment("created_at").notNull().defaultNow(),
		updatedAt: moment("updated_at").notNull().defaultNow(),
	},
	(table) => [index("verification_identifier").on(table.identifier)],
);

/**
 * A sign-up whose address is not verified. It creates no person and gives no right until the mailed link is opened. An
 * address may have several, from its owner and from strangers.
 */
export const signUp = pgTable(
	"sign_up",
	{
		tokenHash: text("token_hash").primaryKey(),
		email: text().notNull(),
		name: text().notNull(),
		/** Scrypt hash, usable only in the browser that chose the password. */
		password: text().notNull(),
		/** Version of the accepted terms; null if no terms were required. */
		termsVersion: text("terms_version"),
		/** SHA-256 of the cookie of the browser that signed up. */
		browserHash: text("browser_hash").notNull(),
		createdAt: moment("created_at").notNull().defaultNow(),
		expiresAt: moment("expires_at").notNull(),
	},
	(table) => [index("sign_up_email").on(table.email, table.createdAt), index("sign_up_expiry").on(table.expiresAt)],
);

export const termsAcceptance = pgTable(
	"terms_acceptance",
	{ userId: userId(), version: text().notNull(), acceptedAt: moment("accepted_at").notNull().defaultNow() },
	(table) => [primaryKey({ columns: [table.userId, table.version] })],
);

/** The sign-in library's rate limits by address. The library deletes rows older than its longest window. */
export const rateLimit = pgTable("rate_limit", {
	id: text().primaryKey(),
	key: text().notNull().unique(),
	count: integer().notNull(),
	lastRequest: bigint("last_request", { mode: "number" }).notNull(),
});

/** Number of events in a window that begins with the first (`rate-counter.ts`). */
export const rateCount = pgTable(
	"rate_count",
	{ key: text().primaryKey(), count: integer().notNull(), startedAt: moment("started_at").notNull() },
	(table) => [index("rate_count_started").on(table.startedAt)],
);

export const passkey = pgTable(
	"passkey",
	{
		id: text().primaryKey(),
		userId: userId(),
		name: text().notNull(),
		publicKey: text("public_key").notNull(),
		/** The authenticator's signature counter; 0 if it has none. */
		counter: bigint({ mode: "number" }).notNull(),
		createdAt: moment("created_at").notNull().defaultNow(),
		lastUsedAt: moment("last_used_at"),
	},
	(table) => [index("passkey_user").on(table.userId)],
);

/** Secrets of one-time codes, encrypted under the console's secret. */
export const twoFactor = pgTable(
	"two_factor",
	{
		id: text().primaryKey(),
		secret: text().notNull(),
		backupCodes: text("backup_codes").notNull(),
		userId: userId(),
		verified: boolean().default(true),
	},
	(table) => [index("two_factor_user").on(table.userId)],
);
