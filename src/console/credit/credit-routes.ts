import { t } from "elysia";
import { type Language, requestLanguage } from "../../base/language.ts";
import { type TextId, translateId } from "../../base/translate.ts";
import type { TopUpRecord } from "../../billing/top-ups.ts";
import { pageFrom } from "../../db/page.ts";
import { getAccount } from "../../keys/account-admin.ts";
import { formatUsd, minUsd, nanoUsdOfColumn, subUsd } from "../../money/nano-usd.ts";
import { ENGLISH_USD, GERMAN_USD } from "../../money/shown-usd.ts";
import { accountRoutes } from "../account-routes.ts";
import type { Parts } from "../console-deps.ts";
import { PAGE_QUERY } from "../page-query.ts";
import { detailsTable, printPage } from "../print-page.ts";
import { type InvoiceParty, partyLines, readBillingDetails } from "../statement/billing-details.ts";
import { readAlert } from "./alert-routes.ts";
import { listPromotions, type RunningRequest, readBalance, runningRequests, topUpOfAccount } from "./credit.ts";
import { ledgerPage } from "./credit-ledger.ts";
import { topUpRoutes } from "./top-up-routes.ts";

export function creditRoutes(
	parts: Parts<"statements" | "clock" | "config" | "brand" | "keyMaker" | "cards" | "sessions" | "origin">,
) {
	const { statements } = parts;
	return accountRoutes(parts, "console-credit", "/credit")
		.use(topUpRoutes(parts))
		.get("/", ({ member }) => creditOf(parts, member.accountId))
		.get(
			"/running",
			async ({ member }): Promise<{ items: RunningRequest[] }> => ({
				items: await runningRequests(statements, member.accountId),
			}),
		)
		.get("/receipts/:id", async ({ member: { accountId }, request, params }) => {
			const topUp = await topUpOfAccount(statements, accountId, params.id);
			const account = await getAccount(statements, accountId);
			const { serviceName, seller } = parts.brand;
			const buyer = await readBillingDetails(statements, accountId);
			return receiptPage(topUp, account, { language: requestLanguage(request.headers), serviceName, seller, buyer });
		})
		.guard({ schema: "standalone", query: t.Object(PAGE_QUERY) })
		.get("/ledger", ({ member, query }) =>
			pageFrom(
				query,
				(page) => ledgerPage(statements, member.accountId, page),
				({ cursor }) => cursor,
			),
		);
}

async function creditOf(parts: Parts<"statements" | "config" | "cards">, accountId: string) {
	const { statements } = parts;
	const [balance, [row], alert, promotions] = await Promise.all([
		readBalance(statements, accountId),
		statements<{ held: string }>`
			select coalesce(sum(r.reserved_nano_usd), 0) as held
			from reservation r join instance_now i on i.id = r.instance_id and i.epoch = r.epoch
				and i.state = 'live' and i.lease_until > clock_timestamp()
			where r.account_id = ${accountId}`,
		readAlert(parts, accountId),
		listPromotions(statements, accountId),
	]);
	const heldByRequestsNanoUsd = minUsd(nanoUsdOfColumn(row?.held ?? 0), balance.heldNanoUsd);
	return {
		balance,
		heldByRequestsNanoUsd,
		heldByAbsentInstancesNanoUsd: subUsd(balance.heldNanoUsd, heldByRequestsNanoUsd),
		alert,
		promotions,
		cardPayments: parts.cards !== undefined,
		/** Bank details of the operator, one per line. Null: the operator sends them to the customer. */
		transferDetails: parts.config.transferDetails,
	};
}

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
	readonly seller: InvoiceParty | null;
	readonly buyer: InvoiceParty;
}

/** Builds a printable page without scripts, images or external resources. */
function receiptPage(
	topUp: TopUpRecord,
	account: { name: string; email: string },
	{ language, serviceName, seller, buyer }: ReceiptFacts,
): Response {
	const text = (id: TextId) => translateId(language, id);
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
	const explanation = text("Prepaid credit for inference, used by requests.");
	const body = `<h1>${title}</h1>${detailsTable(rows, text("Amount"))}<p>${explanation}</p>`;
	return printPage(language, `${title} ${topUp.id}`, body);
}
