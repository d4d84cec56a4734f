import { bigint, boolean, index, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";

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
		createdAt: moment("created_at").notNull().defaultNow(),
		updatedAt: moment("updated_at").notNull().defaultNow(),
	},
	(table) => [index("session_user").on(table.userId)],
);

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
	(table) => [index("auth_account_user").on(table.userId)],
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

export const rateLimit = pgTable("rate_limit", {
	id: text().primaryKey(),
	key: text().notNull().unique(),
	count: integer().notNull(),
	/** Milliseconds since 1970. */
	lastRequest: bigint("last_request", { mode: "number" }).notNull(),
});

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
