import { sql } from "drizzle-orm";
import { index, integer, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { account } from "../../keys/account.sql.ts";

const moment = (name: string) => timestamp(name, { withTimezone: true });

/**
 * Who is told of what in an account: of batches that end, and of what else it wants to hear. Without a row nobody is. The
 * tables have their names from batches, which were told of first.
 */
export const noticeSetting = pgTable("batch_notice_setting", {
	accountId: text("account_id")
		.primaryKey()
		.references(() => account.id),
	/** `maker`: who made the batch's key; `owners`: who gets notices by his role (`notices.get`); null: no mail. */
	mail: text({ enum: ["maker", "owners"] }),
	/** Null: no webhook. */
	webhookUrl: text("webhook_url"),
	/** What the signing secret is derived from; worth nothing without the console's own secret. */
	webhookSalt: text("webhook_salt"),
	/** What else is told, to the webhook and by mail to who pays: types of events. */
	events: jsonb().$type<readonly string[]>().notNull().default(sql`'[]'::jsonb`),
	/** When they were chosen: what happened before is not told. */
	eventsAt: moment("events_at").notNull().defaultNow(),
});

/** Batches that ended and whose notices are not made yet. Written by the statement that ends one. */
export const batchEnd = pgTable("batch_end", {
	batchId: text("batch_id").primaryKey(),
});

/** What is to be told, or was: a mail to one person, or a call of the account's webhook. */
export const notice = pgTable(
	"batch_notice",
	{
		batchId: text("batch_id").notNull(),
		channel: text({ enum: ["mail", "webhook"] }).notNull(),
		/** Whom a mail is for; empty for a webhook. */
		userId: text("user_id").notNull().default(""),
		accountId: text("account_id").notNull(),
		state: text({ enum: ["waiting", "sent", "failed"] })
			.notNull()
			.default("waiting"),
		/** Begun ones, whatever became of them. */
		attempts: integer().notNull().default(0),
		/** Moved on when an attempt begins, so that one which dies with its console is made again. */
		nextAt: moment("next_at").notNull().defaultNow(),
		createdAt: moment("created_at").notNull().defaultNow(),
		triedAt: moment("tried_at"),
		/** HTTP status that the webhook answered the last time. */
		answer: integer(),
		/** Of what is no batch: its type and what is told of it; `batch_id` is then the event's own id. */
		type: text(),
		data: jsonb().$type<Readonly<Record<string, unknown>>>(),
		/** Why the last attempt was none: a word of ours, never what somebody else said. */
		problem: text(),
	},
	(table) => [
		primaryKey({ columns: [table.batchId, table.channel, table.userId] }),
		index("batch_notice_due").on(table.channel, table.nextAt).where(sql`${table.state} = 'waiting'`),
		/** By what it can wait for: of an account, of a batch, of a model that goes away and that very many used. */
		index("batch_notice_lane")
			.on(
				table.channel,
				sql`(case when ${table.type} is null then 1 when ${table.type} = 'model.retiring' then 2 else 0 end)`,
				table.nextAt,
			)
			.where(sql`${table.state} = 'waiting'`),
		index("batch_notice_account").on(table.accountId, table.batchId),
		/** For those that are forgotten. */
		index("batch_notice_created").on(table.createdAt),
	],
);
