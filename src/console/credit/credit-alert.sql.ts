import { bigint, boolean, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { account } from "../../keys/keys.sql.ts";

/** Mails of a balance below a threshold: one for each time it falls. */
export const creditAlert = pgTable("credit_alert", {
	accountId: text("account_id")
		.primaryKey()
		.references(() => account.id),
	thresholdNanoUsd: bigint("threshold_nano_usd", { mode: "number" }).notNull(),
	/** True while the credit was last seen above the threshold. */
	armed: boolean().notNull().default(true),
	lastSentAt: timestamp("last_sent_at", { withTimezone: true }),
});
