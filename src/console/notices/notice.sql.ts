import { sql } from "drizzle-orm";
import { index, integer, jsonb, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { account } from "../../keys/keys.sql.ts";

const moment = (name: string) => timestamp(name, { withTimezone: true });

/** An account's settings for notices; no row: no notices. Named `batch_…` after the first kind of notice. */
export const noticeSetting = pgTable("batch_notice_setting", {
	accountId: text("account_id")
		.primaryKey()
		.references(() => account.id),
	/** Receivers of mails. `maker`: creator of the batch's key; `owners`: members with `notices.get`; null: none. */
	mail: text({ enum: ["maker", "owners"] }),
	webhookUrl: text("webhook_url"),
	/** Salt of the webhook's signing secret, which cannot be derived without the console's own secret. */
	webhookSalt: text("webhook_salt"),
	/** Types of events other than ends of batches, sent to the webhook and by mail to members whose role may pay. */
	events: jsonb().$type<readonly string[]>().notNull().default(sql`'[]'::jsonb`),
	/** Time at which the events were selected; earlier events cause no notice. */
	eventsAt: moment("events_at").notNull().defaultNow(),
});

export const batchEnd = pgTable("batch_end", { batchId: text("batch_id").primaryKey() });

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
		attempts: integer().notNull().default(0),
		/** Time of the next attempt. Postponed when an attempt starts, so that an attempt that dies is repeated. */
		nextAt: moment("next_at").notNull().defaultNow(),
		createdAt: moment("created_at").notNull().defaultNow(),
		triedAt: moment("tried_at"),
		answer: integer(),
		/** Type and content of an event other than a batch's end; `batch_id` is then the id of that event. */
		type: text(),
		data: jsonb().$type<Readonly<Record<string, unknown>>>(),
		/** Code of the last attempt's failure. Never contains text of the receiver. */
		problem: text(),
	},
	(table) => [
		primaryKey({ columns: [table.batchId, table.channel, table.userId] }),
		index("batch_notice_due").on(table.channel, table.nextAt).where(sql`${table.state} = 'waiting'`),
		/** Lanes that cannot delay each other: an account's alerts, its batches, retirements of models. */
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
