import type { Language } from "../../base/language.ts";
import type { TopUpRecord } from "../../billing/top-ups.ts";
import { formatUsd } from "../../money/nano-usd.ts";
import { printPolicy } from "../security-headers.ts";
import { type Party, partyLines } from "../statement/billing-details.ts";
import { PAPER_TEXTS } from "../statement/paper-texts.ts";
import { RECEIPT_TEXTS } from "./receipt-texts.ts";

const STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; color: #111; background: #fff; max-width: 40rem; margin: 3rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 1.5rem; }
table { width: 100%; border-collapse: collapse; }
th, td { text-align: left; padding: 0.5rem 0; border-bottom: 1px solid #ddd; vertical-align: top; overflow-wrap: anywhere; white-space: pre-line; }
th { font-weight: 500; color: #444; width: 12rem; }
.amount { font-variant-numeric: tabular-nums; font-weight: 600; }
p { color: #444; }
@media print { body { margin: 0; } }
`;

const POLICY = printPolicy(`sha256-${new Bun.CryptoHasher("sha256").update(STYLE).digest("base64")}`);

interface ReceiptFacts {
	readonly language: Language;
	readonly serviceName: string;
	readonly seller: Party | null;
	readonly buyer: Party;
}

/** A page for the printer: no script, no picture, nothing that is loaded. */
export function receiptPage(
	topUp: TopUpRecord,
	account: { name: string; email: string },
	{ language, serviceName, seller, buyer }: ReceiptFacts,
): Response {
	const texts = RECEIPT_TEXTS[language];
	const paid = topUp.decidedAtMs ?? topUp.createdAtMs;
	const rows: [string, string][] = [
		[texts.number, topUp.id],
		[texts.service, serviceName],
		...(seller === null ? [] : [[texts.soldBy, partyLines(seller, language).join("\n")] as [string, string]]),
		[texts.account, `${account.name} (${account.email})`],
		...(partyLines(buyer, language).length === 0
			? []
			: [[texts.billedTo, partyLines(buyer, language).join("\n")] as [string, string]]),
		[texts.amount, `USD ${inLanguage(formatUsd(topUp.amountNanoUsd), language)}`],
		[texts.paidBy, texts.methods[topUp.method]],
		[texts.reference, topUp.reference],
		[texts.date, `${new Date(paid).toISOString().slice(0, 10)} (UTC)`],
		[texts.state, texts.states[topUp.state]],
	];
	const lines = rows.map(([name, value]) => {
		const amount = name === texts.amount ? ' class="amount"' : "";
		return `<tr><th scope="row">${escaped(name)}</th><td${amount}>${escaped(value)}</td></tr>`;
	});
	const title = topUp.state === "confirmed" ? texts.receipt : texts.topUp;
	const html = `<!doctype html>
<html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} ${escaped(topUp.id)}</title><style>${STYLE}</style></head>
<body><main><h1>${title}</h1><table><tbody>${lines.join("\n")}</tbody></table>
<p>${texts.explanation}</p></main></body></html>`;
	return new Response(html, {
		headers: {
			"content-type": "text/html; charset=utf-8",
			"content-language": language,
			"content-security-policy": POLICY,
		},
	});
}

function escaped(text: string): string {
	return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Decimal text, with the point of the language. */
const inLanguage = (decimal: string, language: Language): string => decimal.replace(".", PAPER_TEXTS[language].point);
