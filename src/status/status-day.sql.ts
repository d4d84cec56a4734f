import { bit, date, pgTable, primaryKey, text } from "drizzle-orm/pg-core";

/** One bit per minute of the day (UTC), the first minute first. */
const minutes = (name: string) => bit(name, { dimensions: 1_440 }).notNull();

/**
 * State of one part of the service on one day. Instances combine their observations by OR, so that repeats change
 * nothing. A minute without a bit in `observed` was seen by no instance.
 */
export const statusDay = pgTable(
	"status_day",
	{
		day: date().notNull(),
		/** `service`, `endpoint:<name>` or `model:<id>`. */
		subject: text().notNull(),
		observed: minutes("observed"),
		/** Some instance found it operational or degraded. */
		serving: minutes("serving"),
		/** Some instance found it operational. */
		operational: minutes("operational"),
	},
	(table) => [primaryKey({ columns: [table.day, table.subject] })],
);
