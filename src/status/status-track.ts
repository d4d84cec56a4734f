import type { CatalogSnapshot } from "../catalog/model.ts";
import type { HistoryAnswer, UptimeDay, UptimeTrack } from "./status-answer.ts";
import { HISTORY_DAYS, type HistoryView } from "./status-history.ts";
import { endpointSubject, modelEndpoints, modelSubject, SERVICE_SUBJECT } from "./status-levels.ts";
import type { DayMinutes } from "./status-store.ts";

const DAY_MS = 86_400_000;

/** Response with the history. `today`: days since 1970. Omits subjects that are no longer in the catalogue. */
export function historyAnswer(view: HistoryView, snapshot: CatalogSnapshot, today: number): HistoryAnswer {
	const oldest = today - HISTORY_DAYS + 1;
	const track = (subject: string) => trackOf(view.subjects.get(subject), oldest, today);
	const models = [...snapshot.models.values()];
	const offered = new Set(models.flatMap(modelEndpoints));
	return {
		as_of: view.readAtMs === undefined ? null : new Date(view.readAtMs).toISOString(),
		from: isoDateOfDay(oldest),
		to: isoDateOfDay(today),
		service: track(SERVICE_SUBJECT),
		services: Object.fromEntries([...offered].map((name) => [name, track(endpointSubject(name))])),
		models: models.map(({ id }) => ({ id, ...track(modelSubject(id)) })),
	};
}

/** A date such as `2026-11-21`; `day` counts days since 1970. */
export function isoDateOfDay(day: number): string {
	return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** Percentage with two decimals, rounded down, so that 100 means all. */
export function percentFloor(part: number, whole: number): number {
	return Math.floor((part * 10_000) / whole) / 100;
}

function trackOf(tallies: ReadonlyMap<number, DayMinutes> | undefined, oldest: number, today: number): UptimeTrack {
	const days: UptimeDay[] = [];
	let up = 0;
	let observed = 0;
	for (let day = oldest; day <= today; day += 1) {
		const tally = tallies?.get(day);
		if (tally === undefined) continue;
		up += tally.operational + tally.degraded;
		observed += tally.operational + tally.degraded + tally.down;
		days.push({
			date: isoDateOfDay(day),
			operational_minutes: tally.operational,
			degraded_minutes: tally.degraded,
			down_minutes: tally.down,
		});
	}
	return { uptime_percent: observed === 0 ? null : percentFloor(up, observed), days };
}
