import { listTopUps } from "../../billing/top-ups.ts";
import { type Statements, toView } from "../../db/statements.ts";
import { type AccountRecord, getAccount } from "../../keys/account-admin.ts";
import { listKeys } from "../../keys/key-admin.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { listPromotions, readBalance, topUpView } from "../credit/credit.ts";
import { ledgerPage } from "../credit/credit-ledger.ts";
import { keyView, readHeldCredit } from "../keys/key-view.ts";
import { listMembers } from "../members/members.ts";

export interface AccountRow
	extends Omit<AccountRecord, "timeZone" | "tags" | "tokensPerMinute" | "agreements" | "etag"> {
	readonly balanceNanoUsd: NanoUsd;
	readonly spentNanoUsd: NanoUsd;
}

const DETAIL_ROWS = 50;

/** Returns accounts, newest first. `q` is an account's id, or part of a mail address or name. */
export async function searchAccounts(
	statements: Statements,
	q: string | null,
	page: { asked: number; after: string | null },
): Promise<AccountRow[]> {
	const pattern = q === null || q === "" ? null : `%${q.replace(/[\\%_]/g, "\\$&")}%`;
	const rows = await statements<object>`
		select a.id, a.email, a.name, a.state, a.topped_up, a.signed_in_at, a.created_at,
			b.limit_nano_usd - s.spent as balance_nano_usd, s.spent as spent_nano_usd
		from account a join budget b on b.id = a.id cross join lateral (
			select budget_spent(a.id) as spent) s
		where (${pattern}::text is null or a.email ilike ${pattern}::text or a.name ilike ${pattern}::text or a.id = ${q}::text
				or a.id = (select account_id from api_key where id = ${q}::text) or a.id = (select account_id from top_up where id = ${q}::text))
			and (${page.after}::text is null or a.id < ${page.after}::text)
		order by a.id desc limit ${page.asked}`;
	return rows.map(toView<AccountRow>);
}

export async function accountDetail(statements: Statements, id: string, nowMs: number) {
	const account = await getAccount(statements, id);
	const [balance, promotions, keys, held, topUps, members, entries] = await Promise.all([
		readBalance(statements, account.id),
		listPromotions(statements, account.id),
		listKeys(statements, account.id, { limit: DETAIL_ROWS }),
		readHeldCredit("key", statements, account.id),
		listTopUps(statements, { accountId: account.id }, { limit: DETAIL_ROWS }),
		listMembers(statements, account.id),
		ledgerPage(statements, account.id, { asked: DETAIL_ROWS, after: null }),
	]);
	return {
		account,
		balance,
		promotions,
		keys: keys.items.map((key) => keyView(key, held.get(key.id), nowMs)),
		topUps: topUps.items.map(topUpView),
		members: members.items,
		entries,
	};
}
