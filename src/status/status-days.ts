import type { Language } from "../base/language.ts";
import { type TextId, type TextValues, translateDate, translateId } from "../base/translate.ts";
import type { HistoryAnswer, UptimeDay, UptimeTrack } from "./status-answer.ts";
import { HISTORY_DAYS } from "./status-history.ts";
import { MINUTES_PER_DAY } from "./status-store.ts";
import { isoDateOfDay, percentFloor } from "./status-track.ts";

/** Texts of the page, in the reader's language. JSON answers are always English. */
export interface StatusTexts {
	(id: TextId, values?: TextValues): string;
	readonly language: Language;
}

export function statusTexts(language: Language): StatusTexts {
	return Object.assign((id: TextId, values?: TextValues) => translateId(language, id, values), { language });
}

/** Kinds of days. Each kind has its own shape. */
export const DAY_KINDS = {
	up: "Operational",
	degraded: "Degraded at times",
	partly: "Down at times",
	down: "Down for most of the day",
	none: "No data",
} as const satisfies Readonly<Record<string, TextId>>;

type DayKind = keyof typeof DAY_KINDS;

/** Number of days on narrow screens; the CSS hides earlier days. */
const NARROW_DAYS = 30;
const DAY_MS = 86_400_000;
/** A day that was down for a larger share of its observed minutes is shown as down. */
const DOWN_DAY_SHARE = 0.5;
const LONG_MINUTES = 120;

/** HTML of a subject: a cell per day, the uptime, and a list of bad days. */
export function daysHtml(
	text: StatusTexts,
	title: string,
	track: UptimeTrack,
	{ from, to }: Pick<HistoryAnswer, "from" | "to">,
): string {
	const byDate = new Map(track.days.map((day) => [day.date, day]));
	const first = Date.parse(from) / DAY_MS;
	const cells: string[] = [];
	const troubles: string[] = [];
	for (let place = 0; place < HISTORY_DAYS; place += 1) {
		const date = isoDateOfDay(first + place);
		const day = byDate.get(date);
		const kind = kindOf(day);
		const said = dayText(text, date, day, date === to);
		cells.push(`<li class="${kind}"><span>${said}</span></li>`);
		if (kind !== "up" && kind !== "none") troubles.push(`<li>${said}</li>`);
	}
	const uptime =
		track.uptime_percent === null
			? text("no data yet")
			: `${text("{percent} % uptime", { percent: fixed(track.uptime_percent) })}<span class="narrow"> ${text("in {days} days", { days: HISTORY_DAYS })}</span>`;
	return `<ol class="days" role="list" aria-label="${Bun.escapeHTML(text("{title}, day by day", { title }))}">${cells.join("")}</ol>
<p class="scale"><span class="wide">${text("{days} days ago", { days: HISTORY_DAYS })}</span><span class="narrow">${text("{days} days ago", { days: NARROW_DAYS })}</span><span>${uptime}</span><span>${text("today")}</span></p>
${troubles.length === 0 ? "" : `<details><summary>${text(troubles.length === 1 ? "1 day was not fully operational" : "{days} days were not fully operational", { days: troubles.length })}</summary><ul>${troubles.reverse().join("")}</ul></details>\n`}`;
}

/** `2026-11-20: 99.93 % operational, 1 minute down`. */
function dayText(text: StatusTexts, date: string, day: UptimeDay | undefined, isToday: boolean): string {
	const shown = translateDate(text.language, date);
	const when = isToday ? `${shown} (${text("today")})` : shown;
	const observed = observedOf(day);
	if (day === undefined || observed === 0) return `${when}: ${text("no data")}`;
	const lasting = (minutes: number) => ({ duration: minutesText(text, minutes) });
	const parts = [text("{percent} % operational", { percent: fixed(percentFloor(day.operational_minutes, observed)) })];
	if (day.degraded_minutes > 0) parts.push(text("{duration} degraded", lasting(day.degraded_minutes)));
	if (day.down_minutes > 0) parts.push(text("{duration} down", lasting(day.down_minutes)));
	if (!isToday && observed < MINUTES_PER_DAY)
		parts.push(text("{duration} without data", lasting(MINUTES_PER_DAY - observed)));
	return `${when}: ${parts.join(", ")}`;
}

function kindOf(day: UptimeDay | undefined): DayKind {
	const observed = observedOf(day);
	if (day === undefined || observed === 0) return "none";
	if (day.down_minutes > observed * DOWN_DAY_SHARE) return "down";
	if (day.down_minutes > 0) return "partly";
	return day.degraded_minutes > 0 ? "degraded" : "up";
}

function observedOf(day: UptimeDay | undefined): number {
	return day === undefined ? 0 : day.operational_minutes + day.degraded_minutes + day.down_minutes;
}

export function minutesText(text: StatusTexts, minutes: number): string {
	if (minutes < LONG_MINUTES) return text(minutes === 1 ? "1 minute" : "{minutes} minutes", { minutes });
	const lasted = { hours: Math.floor(minutes / 60), minutes: minutes % 60 };
	return text(lasted.minutes === 0 ? "{hours} h" : "{hours} h {minutes} min", lasted);
}

const fixed = (percent: number): string => (percent === 100 ? "100" : percent.toFixed(2));
