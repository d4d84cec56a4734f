import { bit, date, pgTable, primaryKey, text } from "drizzle-orm/pg-core";

/** One bit a minute of the day (UTC), the first minute first. */
const minutes = (name: string) => bit(name, { dimensions: 1_440 }).notNull();

/**
 * How one part of the service did on one day. Instances add what they see by OR, so that a minute counts once however
 * many of them write it and however often. A minute without a bit in `observed` was seen by nobody.
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
