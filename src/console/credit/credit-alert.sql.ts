import { bigint, boolean, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { account } from "../../keys/keys.sql.ts";

/** Settings of balance mails: one mail each time the balance falls below the threshold. */
export const creditAlert = pgTable("credit_alert", {
	accountId: text("account_id")
		.primaryKey()
		.references(() => account.id),
	thresholdNanoUsd: bigint("threshold_nano_usd", { mode: "number" }).notNull(),
	/** True: the next fall below the threshold causes a mail. Set again when the balance rises above it. */
	armed: boolean().notNull().default(true),
	lastSentAt: timestamp("last_sent_at", { withTimezone: true }),
});
