import { bigint, boolean, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";

const moment = (name: string) => timestamp(name, { withTimezone: true });
const createdAt = moment("created_at").notNull().defaultNow();
const updatedAt = moment("updated_at").notNull().defaultNow();
const userId = text("user_id").notNull();

/** The tables that the sign-in library reads and writes, as its adapter needs them. `db/migrations/` makes them. */
export const AUTH_TABLES = {
	user: pgTable("console_user", {
		id: text().primaryKey(),
		name: text().notNull(),
		email: text().notNull(),
		emailVerified: boolean("email_verified").notNull().default(false),
		image: text(),
		twoFactorEnabled: boolean("two_factor_enabled").notNull().default(false),
		operator: boolean().notNull().default(false),
		language: text(),
		createdAt,
		updatedAt,
	}),
	session: pgTable("session", {
		id: text().primaryKey(),
		token: text().notNull(),
		userId,
		expiresAt: moment("expires_at").notNull(),
		ipAddress: text("ip_address"),
		userAgent: text("user_agent"),
		authenticatedAt: moment("authenticated_at"),
		companyRevision: text("company_revision"),
		createdAt,
		updatedAt,
	}),
	account: pgTable("auth_account", {
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		providerId: text("provider_id").notNull(),
		userId,
		accessToken: text("access_token"),
		refreshToken: text("refresh_token"),
		idToken: text("id_token"),
		accessTokenExpiresAt: moment("access_token_expires_at"),
		refreshTokenExpiresAt: moment("refresh_token_expires_at"),
		scope: text(),
		password: text(),
		createdAt,
		updatedAt,
	}),
	verification: pgTable("verification", {
		id: text().primaryKey(),
		identifier: text().notNull(),
		value: text().notNull(),
		expiresAt: moment("expires_at").notNull(),
		createdAt,
		updatedAt,
	}),
	rateLimit: pgTable("rate_limit", {
		id: text().primaryKey(),
		key: text().notNull(),
		count: integer().notNull(),
		lastRequest: bigint("last_request", { mode: "number" }).notNull(),
	}),
	twoFactor: pgTable("two_factor", {
		id: text().primaryKey(),
		secret: text().notNull(),
		backupCodes: text("backup_codes").notNull(),
		userId,
		verified: boolean().default(true),
	}),
};
