import { t } from "elysia";
import { type Language, requestLanguage } from "../../base/language.ts";
import { type TextId, translateId } from "../../base/translate.ts";
import { readAutoAttempts, readAutoTopUp, saveAutoTopUp, switchOffAutoTopUp } from "../../billing/auto-top-ups.ts";
import type { CardPayments } from "../../billing/card-payments.ts";
import type { TopUpRecord } from "../../billing/top-ups.ts";
import { pageFrom } from "../../db/page.ts";
import { toView } from "../../db/statements.ts";
import { getAccount } from "../../keys/account-admin.ts";
import { formatUsd, minUsd, type NanoUsd, nanoUsdOfColumn, subUsd } from "../../money/nano-usd.ts";
import { ENGLISH_USD, GERMAN_USD } from "../../money/shown-usd.ts";
import { auditNotesJson } from "../../ops/audit.ts";
import { accountRoutes, PAGE_QUERY, type Parts, parseAmount, USD_FIELD } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { detailsTable, printPage } from "../print-page.ts";
import { partyLines, readBillingDetails } from "../statement/billing-details.ts";
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
			return receiptPage(parts, topUp, requestLanguage(request.headers));
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

async function receiptPage(
	{ statements, brand: { serviceName, seller } }: Parts<"statements" | "brand">,
	topUp: TopUpRecord,
	language: Language,
): Promise<Response> {
	const account = await getAccount(statements, topUp.accountId);
	const buyer = await readBillingDetails(statements, topUp.accountId);
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

export function alertRoutes(parts: Parts<"statements" | "sessions">) {
	const { statements } = parts;

	return accountRoutes(parts, "console-alert")
		.get("/alert", ({ member }) => readAlert(parts, member.accountId))
		.put(
			"/alert",
			async ({ member: { accountId, noted }, body }) => {
				const threshold = body.usd === null ? null : parseAmount(body.usd, "usd");
				const act = noted("account.alert", { usd: body.usd });
				await statements`
					with off as (
						delete from credit_alert where account_id = ${accountId} and ${threshold}::bigint is null
					), saved as (
						insert into credit_alert (account_id, threshold_nano_usd)
							select ${accountId}, ${threshold}::bigint where ${threshold}::bigint is not null
						on conflict (account_id) do update set threshold_nano_usd = excluded.threshold_nano_usd, armed = true
					), touched as (
						insert into alert_touched (account_id) values (${accountId})
					)
					select audit_note(${auditNotesJson(act)}::text::jsonb, ${accountId}, ${accountId})`;
				return readAlert(parts, accountId);
			},
			{ body: t.Object({ usd: t.Nullable(USD_FIELD) }) },
		);
}

interface AlertView {
	readonly thresholdNanoUsd: NanoUsd | null;
	readonly lastSentAtMs: number | null;
}

async function readAlert({ statements }: Parts<"statements">, accountId: string): Promise<AlertView> {
	const [row] = await statements<object>`
		select threshold_nano_usd, last_sent_at from credit_alert where account_id = ${accountId}`;
	return row === undefined ? { thresholdNanoUsd: null, lastSentAtMs: null } : toView<AlertView>(row);
}

export function autoTopUpRoutes(parts: Parts<"statements" | "cards" | "sessions" | "origin">) {
	const { statements } = parts;
	const cards = (): CardPayments => {
		if (!parts.cards)
			throw new ConsoleError("service_unavailable", "Card payments are not set up. Use a bank transfer.");
		return parts.cards;
	};

	return accountRoutes(parts, "console-auto-top-up", "/credit")
		.get("/auto-top-up", ({ member }) => viewOf(parts, member.accountId))
		.put(
			"/auto-top-up",
			async ({ member: { accountId, noted }, body }) => {
				cards();
				const amounts = {
					belowNanoUsd: parseAmount(body.belowUsd, "belowUsd"),
					amountNanoUsd: parseAmount(body.amountUsd, "amountUsd"),
					monthMostNanoUsd: parseAmount(body.monthMostUsd, "monthMostUsd"),
				};
				// The audit log stores the agreed terms, the person and the time.
				await saveAutoTopUp(statements, accountId, amounts, noted("auto_topup.save", body));
				return viewOf(parts, accountId);
			},
			{
				body: t.Object({
					belowUsd: USD_FIELD,
					amountUsd: USD_FIELD,
					monthMostUsd: USD_FIELD,
					consent: t.Literal(true),
				}),
			},
		)
		.delete("/auto-top-up", async ({ member: { accountId, noted } }) => {
			await switchOffAutoTopUp(statements, accountId, noted("auto_topup.off"));
			return viewOf(parts, accountId);
		})
		.post("/auto-top-up/finish", async ({ member: { accountId } }): Promise<{ url: string }> => {
			return { url: await cards().finish(accountId, `${parts.origin()}/credit?topup=`) };
		})
		.post("/card", async ({ member: { accountId, viewer, noted } }): Promise<{ url: string }> => {
			const back = `${parts.origin()}/credit?card=`;
			return { url: await cards().saved.setup(accountId, { email: viewer.email, back }, noted("card.add")) };
		})
		.delete("/card", async ({ member: { accountId, noted } }) => {
			await cards().saved.remove(accountId, noted("card.remove"));
			return viewOf(parts, accountId);
		});
}

/** `autoTopUp` is null while it is off. `boughtNanoUsd` is the sum of this month's attempts, with pending ones. */
async function viewOf({ statements, cards }: Parts<"statements" | "cards">, accountId: string) {
	const [card, autoTopUp, { attempts, boughtNanoUsd }] = await Promise.all([
		cards === undefined ? null : cards.saved.read(accountId),
		readAutoTopUp(statements, accountId),
		readAutoAttempts(statements, accountId),
	]);
	return { card, autoTopUp, attempts, boughtNanoUsd };
}
