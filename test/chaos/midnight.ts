import type { Random } from "../support/random.ts";
import { nowMs } from "../support/wait.ts";
import type { Fault } from "./faults.ts";
import type { Fleet, FleetMember } from "./fleet.ts";
import type { Load } from "./load.ts";
import type { OwnPostgres } from "./own-postgres.ts";
import { dayIn } from "./project-verdict.ts";
import { TIGHT_CAP } from "./projects.ts";
import type { Excuse, Touched } from "./touched.ts";
import { type Finding, finding, type UsageRow } from "./verdict.ts";

/** The real end of a day, because all processes use the machine's clock. */
export interface Midnight {
	readonly timeZone: string;
	readonly atMs: number;
}

/** Milliseconds before midnight when its faults are prepared; other faults take less time, so none runs then. */
const CLEAR_MS = 20_000;
/** Milliseconds after midnight by which every untouched customer must have been served. */
const AFTER_MS = 20_000;

/** Milliseconds that the upstream's slow requests take. */
const SLOW_MS = 3_000;

/** The time zone with the next end of a day after `fromMs`. In some zone, a day ends at every full hour. */
export function nextMidnight(fromMs: number): Midnight {
	const from = Temporal.Instant.fromEpochMilliseconds(Math.ceil(fromMs));
	const ends = Intl.supportedValuesOf("timeZone").map((timeZone) => {
		const today = from.toZonedDateTimeISO(timeZone).toPlainDate();
		return { timeZone, atMs: today.add({ days: 1 }).toZonedDateTime(timeZone).epochMilliseconds };
	});
	return ends.reduce((first, one) => (one.atMs < first.atMs ? one : first));
}

/** The first requests on a new day do not count as warm, because instances must draw credit from the new budget. */
export const renewalAt = ({ atMs }: Midnight): Excuse => ({
	why: "had a new day's credit to fetch",
	fromMs: atMs,
	untilMs: atMs,
});

/** Faults at midnight. Each happens once, all at the same time. */
export function midnightFaults(
	{ atMs }: Midnight,
	{ fleet, postgres, touched }: { fleet: Fleet; postgres: OwnPostgres; touched: Touched },
	random: Random,
): { member: () => Fault | undefined; database: () => Fault | undefined } {
	const until = (ms: number) => Bun.sleep(Math.max(0, ms - nowMs()));
	const [killed, paused] = random.shuffled(fleet.members) as [FleetMember, FleetMember];
	const members: Fault = {
		name: "midnight: kill -9 of one instance, SIGSTOP of another",
		async run() {
			const kill = async () => {
				await until(atMs - random.between(0, 150));
				await touched.during("away", killed.index, async () => {
					await killed.crash();
					await killed.start();
				});
			};
			const pause = async () => {
				await until(atMs - random.between(200, 900));
				await touched.during("cut off", paused.index, async () => {
					paused.process()?.kill("SIGSTOP");
					await until(atMs + random.between(200, 900));
					paused.process()?.kill("SIGCONT");
				});
			};
			await Promise.all([kill(), pause()]);
			await until(atMs + AFTER_MS);
		},
	};
	const away: Fault = {
		name: "midnight: Postgres stopped",
		async run() {
			await until(atMs - random.between(100, 1_000));
			await touched.during("cut off", undefined, async () => {
				await postgres.stop();
				await until(atMs + random.between(100, 1_000));
				await postgres.start();
			});
		},
	};
	const alone: Fault = { name: "midnight: Postgres left alone", run: () => until(atMs + AFTER_MS) };
	const once = (fault: Fault) => {
		let isDue = true;
		return () => {
			if (!isDue || nowMs() < atMs - CLEAR_MS) return undefined;
			isDue = false;
			return fault;
		};
	};
	return { member: once(members), database: once(random.fraction() < 0.4 ? away : alone) };
}

/** Judges claims about the end of the day. Call it after all instances have stopped. */
export function judgeMidnight(
	{ atMs, timeZone }: Midnight,
	load: Load,
	rows: readonly UsageRow[],
	touched: Touched,
): Finding[] {
	// The end of a crashed request is unknown, so it may have been at midnight.
	const ranOver = ({ basis, admitted_ms: fromMs, duration_ms: forMs }: UsageRow) =>
		fromMs < atMs && fromMs + (basis === "recovered" ? SLOW_MS : forMs) >= atMs;
	const over = rows.filter((row) => row.budgets !== null && ranOver(row));
	const [lastDay, newDay] = [dayIn(timeZone, atMs - 1), dayIn(timeZone, atMs)];
	const times = new Map<string, number>();
	for (const { request_id: id } of rows) times.set(id, (times.get(id) ?? 0) + 1);
	const near = load.sent.filter(
		({ key, member, sentAtMs, endMs = sentAtMs, left }) =>
			load.steady.has(key) &&
			!left &&
			endMs >= atMs &&
			sentAtMs < atMs + AFTER_MS &&
			touched.isQuiet(member, sentAtMs, endMs),
	);
	const tight = load.projects.filter(
		({ period, isChanged, caps }) => period === "day" && !isChanged && caps[0]?.cap === TIGHT_CAP,
	);
	const spentOn = (project: string, day: string) =>
		rows
			.filter(({ budgets }) => budgets?.includes(`${project}:day:${day}`))
			.reduce((sum, { charged }) => sum + charged, 0);
	return [
		finding("what ran over midnight is settled once, on the day on which it began", over, (row) => {
			const days = (row.budgets ?? []).filter((budget) => budget.includes(":day:"));
			const right = times.get(row.request_id) === 1 && days.every((budget) => budget.endsWith(lastDay));
			return right ? undefined : `${row.request_id}: ${times.get(row.request_id)} times, ${days}`;
		}),
		finding("nobody with credit is refused over midnight by an instance that nothing happens to", near, (one) =>
			[402, 503].includes(one.status) || one.status === 0
				? `${one.status} ${one.code ?? "no answer"} ${Math.round(one.sentAtMs - atMs)} ms after midnight`
				: undefined,
		),
		finding("a cap that was spent on the day before is whole on the new one", tight, ({ id }) => {
			const [before, after] = [spentOn(id, lastDay), spentOn(id, newDay)];
			return before > TIGHT_CAP / 2 && after > TIGHT_CAP / 2
				? undefined
				: `${id}: ${before} and ${after} of ${TIGHT_CAP}`;
		}),
	];
}
