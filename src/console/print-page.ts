import type { Language } from "../base/language.ts";
import { printPagePolicy } from "./security-headers.ts";

const STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; color: #111; background: #fff; max-width: 48rem; margin: 3rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 1.5rem; }
h2 { font-size: 1rem; margin: 2rem 0 0.25rem; }
a { color: inherit; }
table { width: 100%; border-collapse: collapse; }
th, td { text-align: start; padding: 0.4rem 0.75rem 0.4rem 0; border-bottom: 1px solid #ddd; vertical-align: top; overflow-wrap: anywhere; white-space: pre-line; }
th { font-weight: 500; color: #444; width: 12rem; }
tr.strong > * { font-weight: 600; color: #111; }
.amount { text-align: end; padding-inline-end: 0; font-variant-numeric: tabular-nums; white-space: nowrap; }
.facts .amount { text-align: start; font-weight: 600; }
bdi { unicode-bidi: plaintext; }
p { color: #444; }
@media (max-width: 40rem) {
	body { margin-top: 1.5rem; }
	.facts th { width: 6rem; }
	.rows tr { display: grid; grid-template-columns: 1fr auto; border-bottom: 1px solid #ddd; padding: 0.4rem 0; }
	.rows th, .rows td { border: 0; padding: 0; width: auto; }
	.rows td { grid-column: 1 / -1; color: #444; }
	.rows td.amount { grid-column: 2; grid-row: 1; color: #111; }
}
@media print { body { margin: 0; max-width: none; } tr { break-inside: avoid; } }
`;
const POLICY = printPagePolicy(`sha256-${new Bun.CryptoHasher("sha256").update(STYLE).digest("base64")}`);

/** Printable page without scripts, images or external resources. `body` is HTML. */
export function printPage(language: Language, title: string, body: string): Response {
	const html = `<!doctype html>
<html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body><main>${body}</main></body></html>`;
	const headers = { "content-type": "text/html; charset=utf-8", "content-language": language };
	return new Response(html, { headers: { ...headers, "content-security-policy": POLICY } });
}

export function detailsTable(rows: readonly (readonly [name: string, value: string])[], strong?: string): string {
	const lines = rows.map(([name, value]) => {
		const amount = name === strong ? ' class="amount"' : "";
		return `<tr><th scope="row">${escapeHtml(name)}</th><td${amount}>${bidiIsolatedHtml(value)}</td></tr>`;
	});
	return `<table class="facts"><tbody>${lines.join("\n")}</tbody></table>`;
}

/** Isolates a text in its own element, so that right-to-left text does not reorder the text around it. */
export const bidiIsolatedHtml = (text: string): string => `<bdi>${escapeHtml(text)}</bdi>`;

export function escapeHtml(text: string): string {
	return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
