import type { HistoryAnswer, Track, TrackDay } from "./status-answer.ts";
import { HISTORY_DAYS } from "./status-history.ts";
import { MINUTES_PER_DAY } from "./status-store.ts";
import { dateOf, percentOf } from "./status-track.ts";

/** On narrow screens the style leaves out the days before these. */
const NARROW_DAYS = 30;
const DAY_MS = 86_400_000;
/** A day with more of its observed minutes down than this share is shown as down. */
const DOWN_DAY_SHARE = 0.5;
const LONG_MINUTES = 120;

/** Kinds of days; each has a shape of its own besides its colour. */
type DayKind = "up" | "degraded" | "partly" | "down" | "none";
export const DAY_KINDS: Readonly<Record<DayKind, string>> = {
	up: "Operational",
	degraded: "Degraded at times",
	partly: "Down at times",
	down: "Down for most of the day",
	none: "No data",
};

/** One cell a day, each with its text; under them the uptime, and the days that went wrong in words. */
export function daysHtml(title: string, track: Track, { from, to }: Pick<HistoryAnswer, "from" | "to">): string {
	const byDate = new Map(track.days.map((day) => [day.date, day]));
	const first = Date.parse(from) / DAY_MS;
	const cells: string[] = [];
	const troubles: string[] = [];
	for (let place = 0; place < HISTORY_DAYS; place += 1) {
		const date = dateOf(first + place);
		const day = byDate.get(date);
		const kind = kindOf(day);
		const text = dayText(date, day, date === to);
		cells.push(`<li class="${kind}"><span>${text}</span></li>`);
		if (kind !== "up" && kind !== "none") troubles.push(`<li>${text}</li>`);
	}
	const uptime =
		track.uptime_percent === null
			? "no data yet"
			: `${percentText(track.uptime_percent)} uptime<span class="narrow"> in ${HISTORY_DAYS} days</span>`;
	return `<ol class="days" role="list" aria-label="${Bun.escapeHTML(title)}, day by day">${cells.join("")}</ol>
<p class="scale"><span class="wide">${HISTORY_DAYS} days ago</span><span class="narrow">${NARROW_DAYS} days ago</span><span>${uptime}</span><span>today</span></p>
${troubles.length === 0 ? "" : `<details><summary>${troublesText(troubles.length)}</summary><ul>${troubles.reverse().join("")}</ul></details>\n`}`;
}

/** `2026-11-20: 99.93 % operational, 1 minute down`. */
function dayText(date: string, day: TrackDay | undefined, isToday: boolean): string {
	const when = isToday ? `${date} (today)` : date;
	const observed = observedOf(day);
	if (day === undefined || observed === 0) return `${when}: no data`;
	const parts = [`${percentText(percentOf(day.operational_minutes, observed))} operational`];
	if (day.degraded_minutes > 0) parts.push(`${minutesText(day.degraded_minutes)} degraded`);
	if (day.down_minutes > 0) parts.push(`${minutesText(day.down_minutes)} down`);
	if (!isToday && observed < MINUTES_PER_DAY) parts.push(`${minutesText(MINUTES_PER_DAY - observed)} without data`);
	return `${when}: ${parts.join(", ")}`;
}

function kindOf(day: TrackDay | undefined): DayKind {
	const observed = observedOf(day);
	if (day === undefined || observed === 0) return "none";
	if (day.down_minutes > observed * DOWN_DAY_SHARE) return "down";
	if (day.down_minutes > 0) return "partly";
	return day.degraded_minutes > 0 ? "degraded" : "up";
}

function observedOf(day: TrackDay | undefined): number {
	return day === undefined ? 0 : day.operational_minutes + day.degraded_minutes + day.down_minutes;
}

function percentText(percent: number): string {
	return `${percent === 100 ? "100" : percent.toFixed(2)} %`;
}

export function minutesText(minutes: number): string {
	if (minutes < LONG_MINUTES) return minutes === 1 ? "1 minute" : `${minutes} minutes`;
	const rest = minutes % 60;
	return `${Math.floor(minutes / 60)} h${rest === 0 ? "" : ` ${rest} min`}`;
}

function troublesText(count: number): string {
	return count === 1 ? "1 day was not fully operational" : `${count} days were not fully operational`;
}
