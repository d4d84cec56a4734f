import type { ServiceName, StatusAnswer, Track } from "./status-answer.ts";
import { DAY_KINDS, daysHtml, minutesText } from "./status-days.ts";
import { STATUS_STYLE } from "./status-style.ts";

/** Styles are allowed by their hash, scripts not at all. */
export const STATUS_PAGE_POLICY = [
	"default-src 'none'",
	`style-src 'sha256-${new Bun.CryptoHasher("sha256").update(STATUS_STYLE).digest("base64")}'`,
	"img-src 'self'",
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
].join("; ");

const HEADLINE: Readonly<Record<StatusAnswer["status"], string>> = {
	operational: "All services are connected",
	degraded: "Some services are not connected",
	unavailable: "No service is connected",
};

const SERVICE_TITLES: Readonly<Record<ServiceName, string>> = {
	chat: "Chat completions",
	completions: "Completions",
	embeddings: "Embeddings",
	transcription: "Audio transcription",
	image_generation: "Image generation",
	rerank: "Reranking",
	batch: "Managed batches",
};

/** A dot besides the word: full, half, empty. */
const DOTS = { connected: "good", operational: "good", degraded: "fair", unavailable: "bad" } as const;

/** The history is read every minute; one that is older than this says so. */
const STALE_MS = 3 * 60_000;

/** The status for people. */
export function statusPage(answer: StatusAnswer): string {
	const { history } = answer;
	const row = (title: string, state: keyof typeof DOTS, track: Track | undefined, note = "") =>
		`<li><div class="title"><h3>${Bun.escapeHTML(title)}${note && ` <small>${Bun.escapeHTML(note)}</small>`}</h3><span class="state ${DOTS[state]}">${state}</span></div>
${track ? daysHtml(title, track, history) : '<p class="dim">No model for it is deployed.</p>\n'}</li>`;
	const services = Object.entries(answer.services).map(([name, state]) =>
		row(SERVICE_TITLES[name as ServiceName], state, history.services[name as ServiceName]),
	);
	const tracks = new Map(history.models.map((model) => [model.id, model]));
	const models = answer.models.map(({ id, name, status }) => row(name, status, tracks.get(id), name === id ? "" : id));
	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/assets/icon.svg">
<title>Service status</title>
<style>${STATUS_STYLE}</style>
</head>
<body>
<nav aria-label="Main"><a href="/">Start</a><a href="/models">Models</a><a href="/docs">Docs</a></nav>
<main>
<h1>${HEADLINE[answer.status]}</h1>
<p class="dim">As of <time datetime="${answer.checked_at}">${timeText(answer.checked_at)}</time>.${ageText(answer)}</p>
<h2>Overall</h2>
<ul class="parts">${row("All services and models", answer.status, history.service)}</ul>
<h2>Services</h2>
<ul class="parts">${services.join("")}</ul>
<h2>Models</h2>
${models.length === 0 ? '<p class="dim">No model is deployed.</p>' : `<ul class="parts">${models.join("")}</ul>`}
<h2>How to read this</h2>
<ul class="legend">${Object.entries(DAY_KINDS)
		.map(([kind, text]) => `<li><span class="swatch ${kind}"></span>${text}</li>`)
		.join("")}</ul>
<p class="dim">A column is a day in UTC. Once a minute it is noted what a request would have met: operational; degraded, if some of the servers or models took none; or down, if all did. Uptime is the share of the noted minutes that were not down. A minute that nobody noted counts for neither side.</p>
<p class="dim">Version ${Bun.escapeHTML(answer.version)}.</p>
</main>
</body>
</html>
`;
}

function timeText(iso: string): string {
	return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}

function ageText({ checked_at, history: { as_of } }: StatusAnswer): string {
	if (as_of === null) return " The history has not been read yet.";
	const ageMs = Date.parse(checked_at) - Date.parse(as_of);
	return ageMs < STALE_MS ? "" : ` The history is ${minutesText(Math.floor(ageMs / 60_000))} old.`;
}
