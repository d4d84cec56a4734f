/** How often a cap renews. A `lifetime` cap never renews. */
export const CAP_PERIODS = ["lifetime", "day", "week", "month"] as const;
export type CapPeriod = (typeof CAP_PERIODS)[number];

/** The current period of a cap, kept until it ends. */
export interface CurrentPeriod {
	readonly budgets: readonly string[];
	readonly timeZone: string;
	readonly fromMs: number;
	readonly untilMs: number;
}

const LENGTHS = { day: { days: 1 }, week: { weeks: 1 }, month: { months: 1 } } as const;

/**
 * The period that contains a time in a time zone; weeks start on Monday. A day starts with its first moment, which
 * daylight saving time may move to one o'clock. `cap_day` in `db/functions/caps.sql` computes the same.
 */
export function periodAt(period: Exclude<CapPeriod, "lifetime">, timeZone: string, atMs: number) {
	const day = Temporal.Instant.fromEpochMilliseconds(Math.trunc(atMs)).toZonedDateTimeISO(timeZone).toPlainDate();
	const first =
		period === "day" ? day : period === "week" ? day.subtract({ days: day.dayOfWeek - 1 }) : day.with({ day: 1 });
	return {
		/** First day of the period, such as 2026-11-22. */
		firstDay: first.toString(),
		fromMs: first.toZonedDateTime(timeZone).epochMilliseconds,
		/** Start of the next period, in Unix milliseconds. */
		untilMs: first.add(LENGTHS[period]).toZonedDateTime(timeZone).epochMilliseconds,
	};
}

export const periodBudget = (owner: string, period: CapPeriod, firstDay: string): string =>
	`${owner}:${period}:${firstDay}`;

/** True for an IANA name. Offsets such as `+02` are refused: PostgreSQL interprets their sign the other way round. */
export const isTimeZone = (text: string): boolean => text === "UTC" || KNOWN_ZONES.has(text);

const KNOWN_ZONES: ReadonlySet<string> = new Set(Intl.supportedValuesOf("timeZone"));
