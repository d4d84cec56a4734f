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

/** A person who signs in. What belongs to customers hangs on accounts, of which a person is a member. */
export const consoleUser = pgTable("console_user", {
	id: text().primaryKey(),
	name: text().notNull(),
	email: text().notNull().unique(),
	emailVerified: boolean("email_verified").notNull().default(false),
	image: text(),
	twoFactorEnabled: boolean("two_factor_enabled").notNull().default(false),
	/** Sees and manages the whole service. Given on the command line alone. */
	operator: boolean().notNull().default(false),
	/** What he reads; null: he has not said, so it is what a browser of his asks for. */
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
		/** When the password was given again; null: not since it began. */
		authenticatedAt: moment("authenticated_at"),
		/** By which company's sign-in, `company_sign_in.revision`: it opens that one's account alone. Null: the person's own. */
		companyRevision: text("company_revision"),
		createdAt: moment("created_at").notNull().defaultNow(),
		updatedAt: moment("updated_at").notNull().defaultNow(),
	},
	(table) => [index("session_user").on(table.userId)],
);

/** Of these a person has one for each provider, and an id of the provider is one person. */
const ofCompany = (table: { providerId: AnyPgColumn }) => sql`${table.providerId} like 'company:%'`;

/** A way to sign in: a password, or an identity at another service. */
export const authAccount = pgTable(
	"auth_account",
	{
		id: text().primaryKey(),
		/** The person's id at the provider. */
		accountId: text("account_id").notNull(),
		providerId: text("provider_id").notNull(),
		userId: userId(),
		accessToken: text("access_token"),
		refreshToken: text("refresh_token"),
		idToken: text("id_token"),
		accessTokenExpiresAt: moment("access_token_expires_at"),
		refreshTokenExpiresAt: moment("refresh_token_expires_at"),
		scope: text(),
		/** Scrypt. */
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

/** One-time values: verification of an address, reset of a password, the way back from another service. */
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
 * Somebody says that an address is his. It makes nobody and gives no right until a mail to the address came back: there
 * may be several for one address, of its owner and of others.
 */
export const signUp = pgTable(
	"sign_up",
	{
		/** SHA-256 of the token in the mail. */
		tokenHash: text("token_hash").primaryKey(),
		email: text().notNull(),
		name: text().notNull(),
		/** Scrypt. Only good together with the browser that chose it. */
		password: text().notNull(),
		/** Of the terms that were agreed to; null where none were asked for. */
		termsVersion: text("terms_version"),
		/** SHA-256 of what the browser that asked holds in a cookie. */
		browserHash: text("browser_hash").notNull(),
		createdAt: moment("created_at").notNull().defaultNow(),
		expiresAt: moment("expires_at").notNull(),
	},
	(table) => [index("sign_up_email").on(table.email, table.createdAt), index("sign_up_expiry").on(table.expiresAt)],
);

/** Who agreed to which terms of the operator's, and when. */
export const termsAcceptance = pgTable(
	"terms_acceptance",
	{
		userId: userId(),
		version: text().notNull(),
		acceptedAt: moment("accepted_at").notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.userId, table.version] })],
);

/** The sign-in library's own limits by address. It deletes what is older than its longest window. */
export const rateLimit = pgTable("rate_limit", {
	id: text().primaryKey(),
	key: text().notNull().unique(),
	count: integer().notNull(),
	/** Milliseconds since 1970. */
	lastRequest: bigint("last_request", { mode: "number" }).notNull(),
});

/** How often something happened within a window that begins with the first (`rate-counter.ts`). */
export const rateCount = pgTable(
	"rate_count",
	{
		/** What is counted, and the SHA-256 of whom. */
		key: text().primaryKey(),
		count: integer().notNull(),
		startedAt: moment("started_at").notNull(),
	},
	(table) => [index("rate_count_started").on(table.startedAt)],
);

/** A key of a person's device, by which that one signs in. */
export const passkey = pgTable(
	"passkey",
	{
		/** The credential's id, base64url. */
		id: text().primaryKey(),
		userId: userId(),
		name: text().notNull(),
		/** COSE, base64url. */
		publicKey: text("public_key").notNull(),
		/** How often it was used, where its device counts; else 0. */
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
