import type { TopUpRecord } from "../../billing/top-ups.ts";
import { formatUsd } from "../../money/nano-usd.ts";
import { printPolicy } from "../security-headers.ts";
import { type Party, partyLines } from "../statement/billing-details.ts";

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

const METHODS: Record<TopUpRecord["method"], string> = {
	transfer: "Bank transfer",
	card: "Card",
	demo: "Demonstration, no payment",
};
const STATES: Record<TopUpRecord["state"], string> = {
	pending: "Pending: not paid yet",
	confirmed: "Paid",
	rejected: "Rejected: not paid",
	refunded: "Refunded",
	disputed: "Disputed",
};

/** A page for the printer: no script, no picture, nothing that is loaded. */
export function receiptPage(
	topUp: TopUpRecord,
	account: { name: string; email: string },
	{ serviceName, seller, buyer }: { serviceName: string; seller: Party | null; buyer: Party },
): Response {
	const paid = topUp.decidedAtMs ?? topUp.createdAtMs;
	const rows: [string, string][] = [
		["Receipt number", topUp.id],
		["Service", serviceName],
		...(seller === null ? [] : [["Sold by", partyLines(seller).join("\n")] as [string, string]]),
		["Account", `${account.name} (${account.email})`],
		...(partyLines(buyer).length === 0 ? [] : [["Billed to", partyLines(buyer).join("\n")] as [string, string]]),
		["Amount", `USD ${formatUsd(topUp.amountNanoUsd)}`],
		["Paid by", METHODS[topUp.method]],
		["Reference", topUp.reference],
		["Date", `${new Date(paid).toISOString().slice(0, 10)} (UTC)`],
		["State", STATES[topUp.state]],
	];
	const lines = rows.map(([name, value]) => {
		const amount = name === "Amount" ? ' class="amount"' : "";
		return `<tr><th scope="row">${escaped(name)}</th><td${amount}>${escaped(value)}</td></tr>`;
	});
	const title = topUp.state === "confirmed" ? "Receipt" : "Top-up";
	const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} ${escaped(topUp.id)}</title><style>${STYLE}</style></head>
<body><main><h1>${title}</h1><table><tbody>${lines.join("\n")}</tbody></table>
<p>Prepaid credit for inference. It is spent as requests are made.</p></main></body></html>`;
	return new Response(html, {
		headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": POLICY },
	});
}

function escaped(text: string): string {
	return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
