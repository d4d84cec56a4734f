import type { Language } from "../base/language.ts";
import type { ServiceName, StatusAnswer, Track } from "./status-answer.ts";
import { daysHtml, minutesText } from "./status-days.ts";
import { STATUS_STYLE } from "./status-style.ts";
import { STATUS_TEXTS, type StatusTexts } from "./status-texts.ts";

/** Styles are allowed by hash; scripts are not. */
export const STATUS_PAGE_POLICY = [
	"default-src 'none'",
	`style-src 'sha256-${new Bun.CryptoHasher("sha256").update(STATUS_STYLE).digest("base64")}'`,
	"img-src 'self'",
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
].join("; ");

/** A dot in addition to the word: full, half, empty. */
const DOTS = { connected: "good", operational: "good", degraded: "fair", unavailable: "bad" } as const;

/** History is read every minute; an older one is marked. */
const STALE_MS = 3 * 60_000;

/** The status page. */
export function statusPage(answer: StatusAnswer, language: Language): string {
	const texts = STATUS_TEXTS[language];
	const { history } = answer;
	const row = (title: string, state: keyof typeof DOTS, track: Track | undefined, note = "") =>
		`<li><div class="title"><h3>${Bun.escapeHTML(title)}${note && ` <small>${Bun.escapeHTML(note)}</small>`}</h3><span class="state ${DOTS[state]}">${texts.states[state]}</span></div>
${track ? daysHtml(texts, title, track, history) : `<p class="dim">${texts.notDeployed}</p>\n`}</li>`;
	const services = Object.entries(answer.services).map(([name, state]) =>
		row(texts.services[name as ServiceName], state, history.services[name as ServiceName]),
	);
	const tracks = new Map(history.models.map((model) => [model.id, model]));
	const models = answer.models.map(({ id, name, status }) => row(name, status, tracks.get(id), name === id ? "" : id));
	return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/assets/icon.svg">
<title>${texts.title}</title>
<style>${STATUS_STYLE}</style>
</head>
<body>
<nav aria-label="${texts.nav.label}"><a href="/">${texts.nav.start}</a><a href="/models">${texts.nav.models}</a><a href="/docs">${texts.nav.docs}</a></nav>
<main>
<h1>${texts.headlines[answer.status]}</h1>
<p class="dim">${texts.asOf(`<time datetime="${answer.checked_at}">${timeText(texts, answer.checked_at)}</time>`)}${ageText(texts, answer)}</p>
<h2>${texts.parts.overall}</h2>
<ul class="parts">${row(texts.everything, answer.status, history.service)}</ul>
<h2>${texts.parts.services}</h2>
<ul class="parts">${services.join("")}</ul>
<h2>${texts.parts.models}</h2>
${models.length === 0 ? `<p class="dim">${texts.noModel}</p>` : `<ul class="parts">${models.join("")}</ul>`}
<h2>${texts.legend}</h2>
<ul class="legend">${Object.entries(texts.dayKinds)
		.map(([kind, text]) => `<li><span class="swatch ${kind}"></span>${text}</li>`)
		.join("")}</ul>
<p class="dim">${texts.explanation}</p>
<p class="dim">${Bun.escapeHTML(texts.version(answer.version))}</p>
</main>
</body>
</html>
`;
}

function timeText(texts: StatusTexts, iso: string): string {
	return `${texts.date(iso.slice(0, 10))} ${iso.slice(11, 19)} UTC`;
}

function ageText(texts: StatusTexts, { checked_at, history: { as_of } }: StatusAnswer): string {
	if (as_of === null) return ` ${texts.neverRead}`;
	const ageMs = Date.parse(checked_at) - Date.parse(as_of);
	return ageMs < STALE_MS ? "" : ` ${texts.old(minutesText(texts, Math.floor(ageMs / 60_000)))}`;
}
