import type { TopUpState } from "../../billing/top-ups.ts";
import { type Statements, toView } from "../../db/statements.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import type { TopUpView } from "../credit/credit.ts";

export interface OperatorTopUp extends TopUpView {
	readonly accountId: string;
	readonly accountEmail: string;
	readonly accountName: string;
	readonly transactionReference: string | null;
	readonly firstLookBy: string | null;
	readonly needsSecondLook: boolean;
}

/** Returns top-ups in a state: pending ones oldest first, because customers wait for them; others newest first. */
export async function listTopUpsByState(
	statements: Statements,
	state: TopUpState,
	page: { asked: number; after: string | null },
	secondLookFrom: NanoUsd | null,
): Promise<OperatorTopUp[]> {
	const { asked, after } = page;
	// Each of these sort orders has an index, so that the few pending top-ups are found without a scan.
	const rows = await (state === "pending"
		? statements<object>`
			select t.id, t.amount_nano_usd, t.method, t.reference, t.state, t.created_at, t.decided_at, t.account_id,
				a.email as account_email, a.name as account_name, c.transaction_reference, coalesce(u.email, c.first_by) as first_look_by
			from top_up t join account a on a.id = t.account_id
				left join top_up_check c on c.top_up_id = t.id left join console_user u on u.id = c.first_by
			where t.state = 'pending' and t.id > coalesce(${after}::text, '')
			order by t.id limit ${asked}`
		: statements<object>`
			select t.id, t.amount_nano_usd, t.method, t.reference, t.state, t.created_at, t.decided_at, t.account_id,
				a.email as account_email, a.name as account_name, c.transaction_reference, coalesce(u.email, c.first_by) as first_look_by
			from top_up t join account a on a.id = t.account_id
				left join top_up_check c on c.top_up_id = t.id left join console_user u on u.id = c.first_by
			where t.state = ${state} and (${after}::text is null or t.id < ${after}::text)
			order by t.id desc limit ${asked}`);
	return rows.map((row) => {
		const topUp = toView<Omit<OperatorTopUp, "needsSecondLook">>(row);
		return { ...topUp, needsSecondLook: secondLookFrom !== null && topUp.amountNanoUsd >= secondLookFrom };
	});
}
