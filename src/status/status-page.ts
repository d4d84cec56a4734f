import type { Language } from "../base/language.ts";
import { type TextId, translate, translateDate } from "../base/translate.ts";
import type { ServiceName, StatusAnswer, UptimeTrack } from "./status-answer.ts";
import { DAY_KINDS, daysHtml, minutesText, type StatusTexts, statusTexts } from "./status-days.ts";
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
