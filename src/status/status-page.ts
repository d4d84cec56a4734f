import type { Language } from "../base/language.ts";
import { type TextId, type TextValues, translate, translateDate, translateId } from "../base/translate.ts";
import type { HistoryAnswer, ServiceName, StatusAnswer, UptimeDay, UptimeTrack } from "./status-answer.ts";
import { HISTORY_DAYS, MINUTES_PER_DAY } from "./status-history.ts";
import { isoDateOfDay, percentFloor } from "./status-levels.ts";
import { STATUS_STYLE } from "./status-style.ts";

const HEADLINES = {
	operational: "All services are connected",
	degraded: "Some services are not connected",
	unavailable: "No service is connected",
} as const satisfies Readonly<Record<StatusAnswer["status"], TextId>>;

/** Names of the kinds of endpoints. A name that equals the endpoint's name is not translated. */
const SERVICES: Readonly<Record<ServiceName, string>> = {
	chat: "Chat completions",
	completions: "Completions",
	embeddings: "Embeddings",
	transcription: "Audio transcription",
	image_generation: "Image generation",
	rerank: "Reranking",
	batch: "Managed batches",
};

/** Content security policy: allows styles by hash, and no scripts. */
export const STATUS_PAGE_POLICY = [
	"default-src 'none'",
	`style-src 'sha256-${new Bun.CryptoHasher("sha256").update(STATUS_STYLE).digest("base64")}'`,
	"img-src 'self'",
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
].join("; ");

/** Shape of the dot for each state, because a state must not be shown by colour alone. */
const DOTS = { connected: "good", operational: "good", degraded: "fair", unavailable: "bad" } as const;

/** Age from which the page marks the history as old; the history is normally read every minute. */
const STALE_MS = 3 * 60_000;

const EXPLANATION =
	"Each column is a day in UTC. The service records its state once a minute: operational; degraded, if some servers or models were unavailable; or down, if all were. Uptime is the share of recorded minutes that were not down.";

export function statusPage(answer: StatusAnswer, language: Language): string {
	const text = statusTexts(language);
	const { history } = answer;
	const row = (title: string, state: keyof typeof DOTS, track: UptimeTrack | undefined, note = "") =>
		`<li><div class="title"><h3>${Bun.escapeHTML(title)}${note && ` <small>${Bun.escapeHTML(note)}</small>`}</h3><span class="state ${DOTS[state]}">${text(state)}</span></div>
${track ? daysHtml(text, title, track, history) : `<p class="dim">${text("No model is deployed for this service.")}</p>\n`}</li>`;
	const services = Object.entries(answer.services).map(([name, state]) =>
		row(translate(language, { id: SERVICES[name as ServiceName] }), state, history.services[name as ServiceName]),
	);
	const tracks = new Map(history.models.map((model) => [model.id, model]));
	const models = answer.models.map(({ id, name, status }) => row(name, status, tracks.get(id), name === id ? "" : id));
	const time = `<time datetime="${answer.checked_at}">${timeText(language, answer.checked_at)}</time>`;
	return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/assets/icon.svg">
<title>${text("Service status")}</title>
<style>${STATUS_STYLE}</style>
</head>
<body>
<nav aria-label="${text("Main")}"><a href="/">Start</a><a href="/models">${text("Models")}</a><a href="/docs">${text("Docs")}</a></nav>
<main>
<h1>${text(HEADLINES[answer.status])}</h1>
<p class="dim">${text("As of {time}.", { time })}${ageText(text, answer)}</p>
<h2>${text("Overall")}</h2>
<ul class="parts">${row(text("All services and models"), answer.status, history.service)}</ul>
<h2>${text("Services")}</h2>
<ul class="parts">${services.join("")}</ul>
<h2>${text("Models")}</h2>
${models.length === 0 ? `<p class="dim">${text("No model is deployed.")}</p>` : `<ul class="parts">${models.join("")}</ul>`}
<h2>${text("How to read this")}</h2>
<ul class="legend">${Object.entries(DAY_KINDS)
		.map(([kind, id]) => `<li><span class="swatch ${kind}"></span>${text(id)}</li>`)
		.join("")}</ul>
<p class="dim">${text(EXPLANATION)}</p>
<p class="dim">Version ${Bun.escapeHTML(answer.version)}.</p>
</main>
</body>
</html>
`;
}

function timeText(language: Language, iso: string): string {
	return `${translateDate(language, iso.slice(0, 10))} ${iso.slice(11, 19)} UTC`;
}

function ageText(text: StatusTexts, { checked_at, history: { as_of } }: StatusAnswer): string {
	if (as_of === null) return ` ${text("The status history is not available yet.")}`;
	const ageMs = Date.parse(checked_at) - Date.parse(as_of);
	return ageMs < STALE_MS
		? ""
		: ` ${text("The history is {duration} old.", { duration: minutesText(text, Math.floor(ageMs / 60_000)) })}`;
}

/** Texts of the page, in the reader's language. JSON answers are always English. */
interface StatusTexts {
	(id: TextId, values?: TextValues): string;
	readonly language: Language;
}

function statusTexts(language: Language): StatusTexts {
	return Object.assign((id: TextId, values?: TextValues) => translateId(language, id, values), { language });
}

/** Kinds of days. Each kind has its own shape. */
const DAY_KINDS = {
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
function daysHtml(
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

function minutesText(text: StatusTexts, minutes: number): string {
	if (minutes < LONG_MINUTES) return text(minutes === 1 ? "1 minute" : "{minutes} minutes", { minutes });
	const lasted = { hours: Math.floor(minutes / 60), minutes: minutes % 60 };
	return text(lasted.minutes === 0 ? "{hours} h" : "{hours} h {minutes} min", lasted);
}

const fixed = (percent: number): string => (percent === 100 ? "100" : percent.toFixed(2));
