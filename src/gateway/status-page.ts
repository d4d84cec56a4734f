import type { StatusAnswer } from "./status.ts";

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 44rem; margin: 3rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
table { width: 100%; border-collapse: collapse; }
td { padding: .5rem 0; border-top: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
td:last-child { text-align: right; white-space: nowrap; }
.connected::before { content: "●"; color: #1a7f37; margin-right: .5rem; }
.unavailable::before { content: "○"; color: #b35900; margin-right: .5rem; }
small { opacity: .7; }
`;

/** Styles are allowed by their hash, scripts not at all. */
const CONTENT_SECURITY_POLICY = [
	"default-src 'none'",
	`style-src 'sha256-${new Bun.CryptoHasher("sha256").update(STYLE).digest("base64")}'`,
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
].join("; ");

const HEADLINE: Readonly<Record<StatusAnswer["status"], string>> = {
	operational: "All services are connected",
	degraded: "Some services are not connected",
	unavailable: "No service is connected",
};

const SERVICE_TITLES: Readonly<Record<keyof StatusAnswer["services"], string>> = {
	chat: "Chat completions",
	completions: "Completions",
	embeddings: "Embeddings",
	transcription: "Audio transcription",
	image_generation: "Image generation",
	rerank: "Reranking",
	batch: "Managed batches",
};

/** The status for people. */
export function statusPage(answer: StatusAnswer): { html: string; contentSecurityPolicy: string } {
	const services = Object.entries(answer.services).map(([name, state]) =>
		row(SERVICE_TITLES[name as keyof StatusAnswer["services"]], state),
	);
	const models = answer.models.map(({ id, name, status }) => row(name === id ? id : `${name} (${id})`, status));
	const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Service status</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${HEADLINE[answer.status]}</h1>
<h2>Services</h2>
<table>${services.join("")}</table>
<h2>Models</h2>
<table>${models.length === 0 ? '<tr><td colspan="2">No model is deployed.</td></tr>' : models.join("")}</table>
<p><small>As of <time datetime="${answer.checked_at}">${answer.checked_at}</time></small></p>
</main>
</body>
</html>
`;
	return { html, contentSecurityPolicy: CONTENT_SECURITY_POLICY };
}

function row(title: string, state: "connected" | "unavailable"): string {
	return `<tr><td>${Bun.escapeHTML(title)}</td><td class="${state}">${state}</td></tr>`;
}
