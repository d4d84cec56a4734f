import { index, pgTable, primaryKey, text, timestamp, unique } from "drizzle-orm/pg-core";
import { account } from "../../keys/keys.sql.ts";
import { consoleUser } from "../sign-in/user.sql.ts";
import { ROLES } from "./roles.ts";

export const member = pgTable(
	"member",
	{
		userId: text("user_id")
			.notNull()
			.references(() => consoleUser.id, { onDelete: "cascade" }),
		accountId: text("account_id")
			.notNull()
			.references(() => account.id),
		role: text({ enum: ROLES }).notNull(),
		joinedAt: timestamp("joined_at", { withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [primaryKey({ columns: [table.userId, table.accountId] }), index("member_account").on(table.accountId)],
);

export const invitation = pgTable(
	"invitation",
	{
		id: text().primaryKey(),
		accountId: text("account_id")
			.notNull()
			.references(() => account.id),
		email: text().notNull(),
		role: text({ enum: ROLES }).notNull(),
		tokenHash: text("token_hash").notNull().unique(),
		invitedBy: text("invited_by").notNull(),
		createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
		expiresAt: timestamp("expires_at", { withTimezone: true }).notNull(),
	},
	(table) => [unique("invitation_account_email").on(table.accountId, table.email)],
);
