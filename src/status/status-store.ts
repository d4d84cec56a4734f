import type { Statements } from "../db/statements.ts";

export const MINUTES_PER_DAY = 1_440;

/** operational: everything works. degraded: something works. down: nothing works. */
export type ServiceLevel = "operational" | "degraded" | "down";

/** Observation of one instance in one minute. */
export interface StatusObservation {
	/** Minutes since 1970, UTC. */
	readonly minute: number;
	/** Levels by subject. Subjects that the instance cannot judge are missing. */
	readonly levels: ReadonlyMap<string, ServiceLevel>;
}

/** Number of minutes in each state on one day. */
export interface DayMinutes {
	readonly operational: number;
	readonly degraded: number;
	readonly down: number;
}

/** `day`: days since 1970, UTC. */
export interface SubjectDay extends DayMinutes {
	readonly subject: string;
	readonly day: number;
}

/** Status history in Postgres. Every method may be repeated. */
export type StatusStore = ReturnType<typeof createStatusStore>;

/** Rows for 90 days of a thousand subjects. */
const READ_ROWS_MAX = 90_000;
const RANK: Readonly<Record<ServiceLevel, number>> = { down: 0, degraded: 1, operational: 2 };

export function createStatusStore(statements: Statements) {
	return {
		/** Adds observations. If instances differ, the best state counts. */
		async add(looks: readonly StatusObservation[]): Promise<void> {
			const rows = looks.flatMap(({ minute, levels }) =>
				[...levels].map(([subject, level]) => ({
					subject,
					day: Math.floor(minute / MINUTES_PER_DAY),
					minute: minute % MINUTES_PER_DAY,
					rank: RANK[level],
				})),
			);
			if (rows.length === 0) return;
			// Sorted, so that two instances do not deadlock.
			await statements`
				insert into status_day as d (day, subject, observed, serving, operational)
				select date '1970-01-01' + s.day, s.subject,
					bit_or(set_bit(0::bit(1440), s.minute, 1)),
					bit_or(set_bit(0::bit(1440), s.minute, (s.rank >= 1)::integer)),
					bit_or(set_bit(0::bit(1440), s.minute, (s.rank >= 2)::integer))
				from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
					as s(day integer, subject text, minute integer, rank integer)
				group by s.day, s.subject
				order by s.day, s.subject
				on conflict (day, subject) do update set observed = d.observed | excluded.observed,
					serving = d.serving | excluded.serving, operational = d.operational | excluded.operational
				where (d.observed, d.serving, d.operational) is distinct from
					(d.observed | excluded.observed, d.serving | excluded.serving, d.operational | excluded.operational)`;
		},
		/** Reads the days from `first` to `last`, newest first. Above `READ_ROWS_MAX` rows, the oldest are missing. */
		read: (first: number, last: number): Promise<SubjectDay[]> => statements<SubjectDay>`
			select subject, (day - date '1970-01-01')::integer as day,
				bit_count(operational)::integer as operational,
				bit_count(serving & ~operational)::integer as degraded,
				bit_count(observed & ~serving)::integer as down
			from status_day
			where day between date '1970-01-01' + ${first}::integer and date '1970-01-01' + ${last}::integer
			order by status_day.day desc
			limit ${READ_ROWS_MAX}::integer`,
		async deleteBefore(day: number): Promise<void> {
			await statements`delete from status_day where day < date '1970-01-01' + ${day}::integer`;
		},
	};
}
