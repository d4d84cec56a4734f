import { Elysia, t } from "elysia";
import { languageOf } from "../../base/language.ts";
import type { TopUpRecord } from "../../billing/top-ups.ts";
import { listTopUps, rejectTopUp } from "../../billing/top-ups.ts";
import { findAccount } from "../../keys/account-admin.ts";
import { nanoUsd } from "../../money/nano-usd.ts";
import { audit } from "../../ops/audit.ts";
import type { AuditAction } from "../../ops/audit-action.ts";
import type { ConsoleParts } from "../console-deps.ts";
import { ACCOUNT_QUERY, amountOf, EMPTY_BODY, PAGE_QUERY, pageOf, pageOfRows, USD } from "../page-query.ts";
import { readAlert } from "../settings-routes.ts";
import { readBillingDetails } from "../statement/billing-details.ts";
import { Refusal } from "../texts/refusal.ts";
import type { OwnTopUpView, RunningRequest, TopUpView } from "./credit.ts";
import { balanceOf, expectTopUp, ownTopUpViews, runningRequests, topUpOfAccount, topUpView } from "./credit.ts";
import { ledgerPage } from "./credit-ledger.ts";
import { receiptPage } from "./receipt.ts";

const query = t.Object(ACCOUNT_QUERY);
const pageQuery = t.Object(PAGE_QUERY);
const amount = t.Object({ usd: USD });

/** The visited account's credit and what moves it. */
export function creditRoutes(parts: ConsoleParts) {
	const { statements, visits } = parts;
	const act = (request: Request, action: AuditAction, topUp: TopUpRecord) => {
		const { viewer, accountId } = visits.account(request);
		const { address } = visits.of(request).connection;
		const detail = { amountNanoUsd: topUp.amountNanoUsd, reference: topUp.reference };
		return audit(statements, { actor: viewer.userId, action, subject: topUp.id, accountId, ip: address, detail });
	};

	return new Elysia({ name: "console-credit", prefix: "/credit" })
		.get("/", ({ request }) => creditOf(parts, visits.account(request).accountId), { query })
		.get(
			"/running",
			async ({ request }): Promise<{ items: RunningRequest[] }> => ({
				items: await runningRequests(statements, visits.account(request).accountId),
			}),
			{ query },
		)
		.get(
			"/top-ups",
			async ({ request, query }): Promise<{ items: OwnTopUpView[]; next: string | null }> => {
				const { accountId } = visits.account(request);
				const { shown, after } = pageOf(query);
				const page = await listTopUps(statements, { accountId }, { limit: shown, after });
				return { items: await ownTopUpViews(statements, page.items), next: page.next };
			},
			{ query: pageQuery },
		)
		.post(
			"/top-ups/transfer",
			async ({ request, body }): Promise<{ topUp: TopUpView; transferDetails: string | null }> => {
				const { accountId } = visits.account(request);
				const topUp = await expectTopUp(statements, accountId, amountOf(body.usd, "usd"), "transfer");
				await act(request, "topup.create", topUp);
				return { topUp: topUpView(topUp), transferDetails: parts.config.transferDetails };
			},
			{ query, body: amount },
		)
		.post(
			"/top-ups/card",
			async ({ request, body }): Promise<{ topUp: TopUpView; url: string }> => {
				const { accountId, viewer } = visits.account(request);
				if (!parts.cards)
					throw new Refusal("service_unavailable", "Card payments are not set up. Use a bank transfer.");
				const amountNanoUsd = parts.cards.wholeCents(amountOf(body.usd, "usd"));
				const topUp = await expectTopUp(statements, accountId, amountNanoUsd, "card");
				const back = `${parts.origin()}/credit?topup=${topUp.id}&payment=`;
				const url = await parts.cards.checkout(topUp, { email: viewer.email, back });
				await act(request, "topup.create", topUp);
				return { topUp: topUpView(topUp), url };
			},
			{ query, body: amount },
		)
		.post(
			"/top-ups/:id/cancel",
			async ({ request, params }): Promise<{ topUp: TopUpView }> => {
				const { accountId, viewer } = visits.account(request);
				const topUp = await topUpOfAccount(statements, accountId, params.id);
				if (topUp.state !== "pending")
					throw new Refusal("conflict", `The top-up is ${topUp.state}: it cannot be cancelled.`);
				// A card may be charged at this very moment, so the page where it is paid is closed first.
				if (topUp.method === "card") await parts.cards?.expire(topUp.id);
				await rejectTopUp(statements, topUp.id, viewer.userId);
				await act(request, "topup.cancel", topUp);
				return { topUp: topUpView(await topUpOfAccount(statements, accountId, params.id)) };
			},
			{ query, body: EMPTY_BODY },
		)
		.get(
			"/ledger",
			async ({ request, query }) => {
				const { accountId } = visits.account(request);
				const { shown, asked, after } = pageOf(query);
				const rows = await ledgerPage(statements, accountId, { asked, after });
				return pageOfRows(rows, shown, (row) => row.cursor);
			},
			{ query: pageQuery },
		)
		.get(
			"/receipts/:id",
			async ({ request, params }) => {
				const { accountId } = visits.account(request);
				const topUp = await topUpOfAccount(statements, accountId, params.id);
				const account = await findAccount(statements, accountId);
				if (account === null) throw new Refusal("not_found", "There is no such account.");
				const { serviceName, seller } = parts.brand;
				const buyer = await readBillingDetails(statements, accountId);
				return receiptPage(topUp, account, { language: languageOf(request.headers), serviceName, seller, buyer });
			},
			{ query },
		);
}

async function creditOf(parts: ConsoleParts, accountId: string) {
	const { statements } = parts;
	const [balance, [row], alert] = await Promise.all([
		balanceOf(statements, accountId),
		statements<{ held: string }>`
			select coalesce(sum(r.reserved_nano_usd), 0) as held
			from reservation r join instance_now i on i.id = r.instance_id and i.epoch = r.epoch
				and i.state = 'live' and i.lease_until > clock_timestamp()
			where r.account_id = ${accountId}`,
		readAlert(parts, accountId),
	]);
	const heldByRequestsNanoUsd = nanoUsd(Math.min(Number(row?.held ?? 0), balance.heldNanoUsd));
	return {
		balance,
		heldByRequestsNanoUsd,
		heldByAbsentInstancesNanoUsd: nanoUsd(balance.heldNanoUsd - heldByRequestsNanoUsd),
		alert,
		cardPayments: parts.cards !== undefined,
		/** Where to transfer to, in lines; null: the operator sends it. */
		transferDetails: parts.config.transferDetails,
	};
}
