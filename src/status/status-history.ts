import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createSingleFlight } from "../base/single-flight.ts";
import type { Statements } from "../db/statements.ts";

export type StatusHistory = ReturnType<typeof createStatusHistory>;

/** The history at its last read from Postgres. Immutable; the next read replaces it. */
export interface HistoryView {
	/** Wall-clock time of the last read; undefined before the first read. */
	readonly readAtMs: number | undefined;
	/** Days (numbered since 1970, UTC) by subject. Days without data are missing. */
	readonly subjects: ReadonlyMap<string, ReadonlyMap<number, DayMinutes>>;
}

/** Days that are shown and kept in memory. */
export const HISTORY_DAYS = 90;
const RETENTION_DAYS = 400;
const MINUTE_MS = 60_000;
/** Instances observe in the middle of the minute, so that a clock some seconds off still counts the same minute. */
const LOOK_AT_MS = 30_000;
export const MINUTES_PER_DAY = 1_440;
/** Maximum number of observations that wait for Postgres: those of a day. Above it the oldest are dropped. */
const WAITING_LOOKS_MAX = MINUTES_PER_DAY;
const LOOKS_PER_WRITE = 60;
/** Days for which observations may still arrive. Earlier days do not change and are not read again. */
const LATE_DAYS = 2;

/**
 * History of the service and its parts. Every instance observes once a minute, writes to Postgres and keeps 90 days in
 * memory, so that no reader waits for Postgres. If instances differ, the best state counts. A minute without a running
 * instance has no data. During an outage of Postgres, observations wait and are written later.
 */
export function createStatusHistory(deps: {
	store: StatusStore;
	clock: Clock;
	log: Log;
	/** Returns the current level of each subject, synchronously and without I/O. */
	look: () => ReadonlyMap<string, ServiceLevel>;
}) {
	const { store, clock, log } = deps;
	let waiting: StatusObservation[] = [];
	let view: HistoryView = { readAtMs: undefined, subjects: new Map() };
	/** A failed update is repeated in the next minute. */
	const update = createSingleFlight(bringUpToDate, (error) => {
		log.warn("the status history could not be updated; trying again", { error });
	});
	let cleanedDay = Number.NEGATIVE_INFINITY;
	let stopped = false;
	let cancel = clock.after(0, () => {
		schedule();
		void update.run();
	});

	function schedule(): void {
		if (stopped) return;
		const intoMinuteMs = clock.wallMs() % MINUTE_MS;
		const delayMs = (LOOK_AT_MS - intoMinuteMs + MINUTE_MS) % MINUTE_MS;
		cancel = clock.after(delayMs === 0 ? MINUTE_MS : delayMs, () => {
			schedule();
			waiting.push({ minute: Math.floor(clock.wallMs() / MINUTE_MS), levels: deps.look() });
			if (waiting.length > WAITING_LOOKS_MAX) waiting = waiting.slice(-WAITING_LOOKS_MAX);
			void update.run();
		});
	}

	async function bringUpToDate(): Promise<void> {
		if (stopped) return;
		while (waiting.length > 0 && !stopped) {
			const batch = waiting.slice(0, LOOKS_PER_WRITE);
			await store.add(batch);
			waiting = waiting.filter((look) => !batch.includes(look));
		}
		const today = daySinceEpoch(clock.wallMs());
		await read(today);
		if (cleanedDay === today) return;
		await store.deleteBefore(today - RETENTION_DAYS);
		cleanedDay = today;
	}

	async function read(today: number): Promise<void> {
		const oldest = today - HISTORY_DAYS + 1;
		const readDay = view.readAtMs === undefined ? Number.NEGATIVE_INFINITY : daySinceEpoch(view.readAtMs);
		const rows = await store.read(Math.max(oldest, Math.min(readDay, today) - LATE_DAYS), today);
		const subjects = new Map<string, Map<number, DayMinutes>>();
		const daysOf = (subject: string) => {
			const days = subjects.get(subject) ?? new Map<number, DayMinutes>();
			subjects.set(subject, days);
			return days;
		};
		for (const [subject, days] of view.subjects)
			for (const [day, tally] of days) if (day >= oldest && day <= today) daysOf(subject).set(day, tally);
		for (const { subject, day, operational, degraded, down } of rows)
			daysOf(subject).set(day, { operational, degraded, down });
		view = { readAtMs: clock.wallMs(), subjects };
	}

	return {
		/** The history at its last read from Postgres; synchronous. */
		view: () => view,
		/** Waits for a running update. */
		async stop(): Promise<void> {
			stopped = true;
			cancel();
			await update.running();
		},
	};
}

export const daySinceEpoch = (wallMs: number): number => Math.floor(wallMs / (MINUTE_MS * MINUTES_PER_DAY));

/** operational: everything works. degraded: something works. down: nothing works. */
export type ServiceLevel = "operational" | "degraded" | "down";

/** Observation of one instance in one minute. */
interface StatusObservation {
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
interface SubjectDay extends DayMinutes {
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
