import { sql } from "drizzle-orm";
import { boolean, jsonb, pgTable, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";
import { account } from "../../keys/keys.sql.ts";
import { ROLES } from "../members/roles.ts";

export const companySignIn = pgTable(
	"company_sign_in",
	{
		accountId: text("account_id")
			.primaryKey()
			.references(() => account.id),
		/** Changes when issuer, client or domain change; company sessions of an earlier revision are invalid. */
		revision: text().notNull().unique(),
		issuer: text().notNull(),
		clientId: text("client_id").notNull(),
		clientSecret: text("client_secret").notNull(),
		/** The provider may assert addresses in this domain once the domain is verified. */
		domain: text().notNull(),
		domainToken: text("domain_token").notNull(),
		domainVerifiedAt: timestamp("domain_verified_at", { withTimezone: true }),
		/** True: mail addresses count as verified even if the provider's claims do not say so. */
		emailTrusted: boolean("email_trusted").notNull(),
		roleClaim: text("role_claim"),
		roleValues: jsonb("role_values").$type<Readonly<Record<string, string>>>().notNull(),
		/** Role of people whose claims name no role. Null: such people can sign in only if they are members. */
		defaultRole: text("default_role", { enum: ROLES }),
		/** True: members other than owners must use single sign-on. */
		required: boolean().notNull(),
	},
	(table) => [uniqueIndex("company_sign_in_domain").on(table.domain).where(sql`${table.domainVerifiedAt} is not null`)],
);
