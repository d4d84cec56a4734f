import { sql } from "drizzle-orm";
import { bigint, check, integer, pgTable, text, timestamp, unique } from "drizzle-orm/pg-core";

const rate = (name: string) => bigint(name, { mode: "number" }).notNull();

/** All versions of all models' prices, in pico-dollars per unit. Rows are inserted and never changed. */
export const rateCardTable = pgTable(
	"rate_card",
	{
		/** `<model>@<version>`. */
		id: text("id").primaryKey(),
		model: text("model").notNull(),
		version: integer("version").notNull(),
		input: rate("input"),
		cachedInput: rate("cached_input"),
		output: rate("output"),
		request: rate("request"),
		image: rate("image"),
		audioSecond: rate("audio_second"),
		search: rate("search"),
		createdAt: timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
	},
	(table) => [
		unique("rate_card_model_version").on(table.model, table.version),
		check("rate_card_version_positive", sql`${table.version} >= 1`),
		check(
			"rate_card_rates_not_negative",
			sql`least(${table.input}, ${table.cachedInput}, ${table.output}, ${table.request}, ${table.image}, ${table.audioSecond}, ${table.search}) >= 0`,
		),
	],
);
