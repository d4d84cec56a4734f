import { Elysia, t } from "elysia";
import { languageOf } from "../../base/language.ts";
import { findAccount } from "../../keys/account-admin.ts";
import { minUsd, nanoUsdOfColumn, subUsd } from "../../money/nano-usd.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { ACCOUNT_QUERY, PAGE_QUERY, pageOf, pageOfRows } from "../page-query.ts";
import { readBillingDetails } from "../statement/billing-details.ts";
import { readAlert } from "./alert-routes.ts";
import type { RunningRequest } from "./credit.ts";
import { balanceOf, runningRequests, topUpOfAccount } from "./credit.ts";
import { ledgerPage } from "./credit-ledger.ts";
import { receiptPage } from "./receipt.ts";
import { topUpRoutes } from "./top-up-routes.ts";

const query = t.Object(ACCOUNT_QUERY);
const pageQuery = t.Object(PAGE_QUERY);

/** The visited account's credit and its movements. */
export function creditRoutes(
	parts: Parts<"statements" | "clock" | "config" | "brand" | "keyMaker" | "cards" | "sessions" | "origin">,
) {
	const { statements, sessions } = parts;
	return new Elysia({ name: "console-credit", prefix: "/credit" })
		.resolve(({ request }) => ({ member: sessions.account(request) }))
		.use(topUpRoutes(parts))
		.get("/", ({ member }) => creditOf(parts, member.accountId), { query })
		.get(
			"/running",
			async ({ member }): Promise<{ items: RunningRequest[] }> => ({
				items: await runningRequests(statements, member.accountId),
			}),
			{ query },
		)
		.get(
			"/ledger",
			async ({ member: { accountId }, query }) => {
				const { shown, asked, after } = pageOf(query);
				const rows = await ledgerPage(statements, accountId, { asked, after });
				return pageOfRows(rows, shown, (row) => row.cursor);
			},
			{ query: pageQuery },
		)
		.get(
			"/receipts/:id",
			async ({ member: { accountId }, request, params }) => {
				const topUp = await topUpOfAccount(statements, accountId, params.id);
				const account = await findAccount(statements, accountId);
				if (account === null) throw new ConsoleError("not_found", "There is no such account.");
				const { serviceName, seller } = parts.brand;
				const buyer = await readBillingDetails(statements, accountId);
				return receiptPage(topUp, account, { language: languageOf(request.headers), serviceName, seller, buyer });
			},
			{ query },
		);
}

async function creditOf(parts: Parts<"statements" | "config" | "cards">, accountId: string) {
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
	const heldByRequestsNanoUsd = minUsd(nanoUsdOfColumn(row?.held ?? 0), balance.heldNanoUsd);
	return {
		balance,
		heldByRequestsNanoUsd,
		heldByAbsentInstancesNanoUsd: subUsd(balance.heldNanoUsd, heldByRequestsNanoUsd),
		alert,
		cardPayments: parts.cards !== undefined,
		/** Bank details, in lines; null: the operator sends them. */
		transferDetails: parts.config.transferDetails,
	};
}
