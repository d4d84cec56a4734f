import type { Language } from "../../base/language.ts";
import { type TextId, write } from "../../base/translate.ts";
import type { TopUpRecord } from "../../billing/top-ups.ts";
import { formatUsd } from "../../money/nano-usd.ts";
import { ENGLISH_USD, GERMAN_USD } from "../../money/shown-usd.ts";
import { factsTable, printPage } from "../print-page.ts";
import { type Party, partyLines } from "../statement/billing-details.ts";

const METHODS = {
	transfer: "Bank transfer",
	card: "Card",
	demo: "Demonstration, no payment",
} as const satisfies Readonly<Record<TopUpRecord["method"], TextId>>;
const STATES = {
	pending: "Pending: not paid yet",
	confirmed: "Paid",
	rejected: "Rejected: not paid",
	refunded: "Refunded",
	disputed: "Disputed",
} as const satisfies Readonly<Record<TopUpRecord["state"], TextId>>;

interface ReceiptFacts {
	readonly language: Language;
	readonly serviceName: string;
	readonly seller: Party | null;
	readonly buyer: Party;
}

/** A page for the printer: no script, no image, no external resource. */
export function receiptPage(
	topUp: TopUpRecord,
	account: { name: string; email: string },
	{ language, serviceName, seller, buyer }: ReceiptFacts,
): Response {
	const text = (id: TextId) => write(language, id);
	const paid = topUp.decidedAtMs ?? topUp.createdAtMs;
	const party = (name: TextId, lines: string[]): [string, string][] =>
		lines.length === 0 ? [] : [[text(name), lines.join("\n")]];
	const { point } = language === "de" ? GERMAN_USD : ENGLISH_USD;
	const rows: [string, string][] = [
		[text("Receipt number"), topUp.id],
		[text("Service"), serviceName],
		...party("Sold by", seller === null ? [] : partyLines(seller, language)),
		[text("Account"), `${account.name} (${account.email})`],
		...party("Billed to", partyLines(buyer, language)),
		[text("Amount"), `USD ${formatUsd(topUp.amountNanoUsd).replace(".", point)}`],
		[text("Paid by"), text(METHODS[topUp.method])],
		[text("Reference"), topUp.reference],
		[text("Date"), `${new Date(paid).toISOString().slice(0, 10)} (UTC)`],
		[text("State"), text(STATES[topUp.state])],
	];
	const title = text(topUp.state === "confirmed" ? "Receipt" : "Top-up");
	const explanation = text("Prepaid credit for inference. It is spent as requests are made.");
	const body = `<h1>${title}</h1>${factsTable(rows, text("Amount"))}<p>${explanation}</p>`;
	return printPage(language, `${title} ${topUp.id}`, body);
}
