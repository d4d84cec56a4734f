import { foreignKey, index, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { project } from "../../keys/keys.sql.ts";
import { member } from "../members/member.sql.ts";

export const projectMember = pgTable(
	"project_member",
	{
		projectId: text("project_id")
			.notNull()
			.references(() => project.id),
		userId: text("user_id").notNull(),
		accountId: text("account_id").notNull(),
		joinedAt: timestamp("joined_at", { withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [
		primaryKey({ columns: [table.projectId, table.userId] }),
		foreignKey({
			columns: [table.userId, table.accountId],
			foreignColumns: [member.userId, member.accountId],
		}).onDelete("cascade"),
		index("project_member_user").on(table.userId, table.accountId),
	],
);
