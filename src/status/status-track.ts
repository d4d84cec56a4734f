import type { CatalogSnapshot } from "../catalog/model.ts";
import type { ServiceName } from "./status.ts";
import type { HistoryView } from "./status-history.ts";
import { HISTORY_DAYS } from "./status-history.ts";
import { endpointSubject, endpointsOf, modelSubject, SERVICE_SUBJECT } from "./status-levels.ts";
import type { DayTally } from "./status-store.ts";

/** How the service did: the last 90 days in UTC. */
export interface HistoryAnswer {
	/** When it was last read, ISO 8601; null before the first time. */
	readonly as_of: string | null;
	/** First and last day, as `2026-11-21`. */
	readonly from: string;
	readonly to: string;
	readonly service: Track;
	/** Those that have a model. */
	readonly services: Readonly<Partial<Record<ServiceName, Track>>>;
	readonly models: readonly ({ readonly id: string } & Track)[];
}

export interface Track {
	/** Share of the observed minutes in which it was not down, rounded down; null if there are none. */
	readonly uptime_percent: number | null;
	/** Oldest first; days without data are left out. */
	readonly days: readonly TrackDay[];
}

export interface TrackDay {
	readonly date: string;
	readonly operational_minutes: number;
	readonly degraded_minutes: number;
	readonly down_minutes: number;
}

const DAY_MS = 86_400_000;

/** `today`: days since 1970. What is not in the catalogue any more is left out. */
export function historyAnswer(view: HistoryView, snapshot: CatalogSnapshot, today: number): HistoryAnswer {
	const oldest = today - HISTORY_DAYS + 1;
	const track = (subject: string) => trackOf(view.subjects.get(subject), oldest, today);
	const models = [...snapshot.models.values()];
	const offered = new Set(models.flatMap(endpointsOf));
	return {
		as_of: view.readAtMs === undefined ? null : new Date(view.readAtMs).toISOString(),
		from: dateOf(oldest),
		to: dateOf(today),
		service: track(SERVICE_SUBJECT),
		services: Object.fromEntries([...offered].map((name) => [name, track(endpointSubject(name))])),
		models: models.map(({ id }) => ({ id, ...track(modelSubject(id)) })),
	};
}

/** As `2026-11-21`; `day`: days since 1970. */
export function dateOf(day: number): string {
	return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** In hundredths, rounded down: only what is whole is called 100. */
export function percentOf(part: number, whole: number): number {
	return Math.floor((part * 10_000) / whole) / 100;
}

function trackOf(tallies: ReadonlyMap<number, DayTally> | undefined, oldest: number, today: number): Track {
	const days: TrackDay[] = [];
	let up = 0;
	let observed = 0;
	for (let day = oldest; day <= today; day += 1) {
		const tally = tallies?.get(day);
		if (tally === undefined) continue;
		up += tally.operational + tally.degraded;
		observed += tally.operational + tally.degraded + tally.down;
		days.push({
			date: dateOf(day),
			operational_minutes: tally.operational,
			degraded_minutes: tally.degraded,
			down_minutes: tally.down,
		});
	}
	return { uptime_percent: observed === 0 ? null : percentOf(up, observed), days };
}
