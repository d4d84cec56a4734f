import { sql } from "drizzle-orm";
import { index, integer, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { account } from "../../keys/keys.sql.ts";

const moment = (name: string) => timestamp(name, { withTimezone: true });

/**
 * An account's settings for notices; without a row there are none. The tables are named after batches, the first kind.
 */
export const noticeSetting = pgTable("batch_notice_setting", {
	accountId: text("account_id")
		.primaryKey()
		.references(() => account.id),
	/**
	 * `maker`: the maker of the batch's key; `owners`: members whose role receives notices (`notices.get`); null: no
	 * mail.
	 */
	mail: text({ enum: ["maker", "owners"] }),
	webhookUrl: text("webhook_url"),
	/** The signing secret is derived from it; worth nothing without the console's own secret. */
	webhookSalt: text("webhook_salt"),
	/** Types of further events, sent to the webhook and by mail to members with a paying role. */
	events: jsonb().$type<readonly string[]>().notNull().default(sql`'[]'::jsonb`),
	/** When they were chosen: earlier events give no notice. */
	eventsAt: moment("events_at").notNull().defaultNow(),
});

export const batchEnd = pgTable("batch_end", {
	batchId: text("batch_id").primaryKey(),
});

export const notice = pgTable(
	"batch_notice",
	{
		batchId: text("batch_id").notNull(),
		channel: text({ enum: ["mail", "webhook"] }).notNull(),
		userId: text("user_id").notNull().default(""),
		accountId: text("account_id").notNull(),
		state: text({ enum: ["waiting", "sent", "failed"] })
			.notNull()
			.default("waiting"),
		/** Attempts that began, whatever their outcome. */
		attempts: integer().notNull().default(0),
		/**
		 * Time of the next attempt. Moved forward when an attempt begins, so that one that dies with its console is
		 * repeated.
		 */
		nextAt: moment("next_at").notNull().defaultNow(),
		createdAt: moment("created_at").notNull().defaultNow(),
		triedAt: moment("tried_at"),
		answer: integer(),
		/** For other events than batches: type and content. `batch_id` is then the event's own id. */
		type: text(),
		data: jsonb().$type<Readonly<Record<string, unknown>>>(),
		/** Why the last attempt failed: a code of ours, never text from outside. */
		problem: text(),
	},
	(table) => [
		primaryKey({ columns: [table.batchId, table.channel, table.userId] }),
		index("batch_notice_due").on(table.channel, table.nextAt).where(sql`${table.state} = 'waiting'`),
		/** By its possible cause of delay: an account, a batch, or a retiring model that very many accounts used. */
		index("batch_notice_lane")
			.on(
				table.channel,
				sql`(case when ${table.type} is null then 1 when ${table.type} = 'model.retiring' then 2 else 0 end)`,
				table.nextAt,
			)
			.where(sql`${table.state} = 'waiting'`),
		index("batch_notice_account").on(table.accountId, table.batchId),
		index("batch_notice_created").on(table.createdAt),
	],
);
