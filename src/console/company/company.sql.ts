import { sql } from "drizzle-orm";
import { boolean, jsonb, pgTable, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";
import { account } from "../../keys/account.sql.ts";
import { ROLES } from "../members/roles.ts";

/** How the people of an account's company sign in: by its own OpenID provider. */
export const companySignIn = pgTable(
	"company_sign_in",
	{
		accountId: text("account_id")
			.primaryKey()
			.references(() => account.id),
		/** Made anew whenever it changes who may come in: sessions of an earlier one open nothing any more. */
		revision: text().notNull().unique(),
		issuer: text().notNull(),
		clientId: text("client_id").notNull(),
		/** Encrypted under the console's secret. */
		clientSecret: text("client_secret").notNull(),
		/** Whose addresses it may speak for, once it is verified. */
		domain: text().notNull(),
		/** To be found in the domain's DNS. */
		domainToken: text("domain_token").notNull(),
		domainVerifiedAt: timestamp("domain_verified_at", { withTimezone: true }),
		/** The provider need not say that an address is verified. */
		emailTrusted: boolean("email_trusted").notNull(),
		/** The claim that decides about roles; null: none does. */
		roleClaim: text("role_claim"),
		/** By the claim's values. */
		roleValues: jsonb("role_values").$type<Readonly<Record<string, string>>>().notNull(),
		/** Of who has none by a claim; null: is not let in, unless he is a member. */
		defaultRole: text("default_role", { enum: ROLES }),
		/** Others than owners come in by it alone. */
		required: boolean().notNull(),
	},
	(table) => [uniqueIndex("company_sign_in_domain").on(table.domain).where(sql`${table.domainVerifiedAt} is not null`)],
);
