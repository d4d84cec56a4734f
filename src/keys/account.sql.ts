import { boolean, pgTable, text, timestamp } from "drizzle-orm/pg-core";

/** A paying customer. The account's credit is the budget of the same id. */
export const account = pgTable("account", {
	/** `acc_…` */
	id: text().primaryKey(),
	email: text().notNull().unique(),
	name: text().notNull(),
	state: text({ enum: ["active", "suspended"] })
		.notNull()
		.default("active"),
	/** Null until a member of the account signed in; an operator's command counts as signing in. */
	signedInAt: timestamp("signed_in_at", { withTimezone: true }),
	/** True once a top-up of at least USD 100 was confirmed; never goes back. */
	toppedUp: boolean("topped_up").notNull().default(false),
	/** The time zone of its caps' days, weeks and months: an IANA name. */
	timeZone: text("time_zone").notNull().default("UTC"),
	createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
});
