import { bit, date, pgTable, primaryKey, text } from "drizzle-orm/pg-core";

/** One bit per minute of the day (UTC), beginning with the first minute. */
const minutes = (name: string) => bit(name, { dimensions: 1_440 }).notNull();

/**
 * State of a subject on a day. Instances combine their observations by OR, so repeated writes change nothing. A minute
 * whose bit in `observed` is 0 was observed by no instance.
 */
export const statusDay = pgTable(
	"status_day",
	{
		day: date().notNull(),
		/** `service`, `endpoint:<name>` or `model:<id>`. */
		subject: text().notNull(),
		observed: minutes("observed"),
		/** Bit set: at least one instance found the subject operational or degraded. */
		serving: minutes("serving"),
		/** Bit set: at least one instance found the subject operational. */
		operational: minutes("operational"),
	},
	(table) => [primaryKey({ columns: [table.day, table.subject] })],
);
