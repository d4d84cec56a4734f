import type { TopUpState } from "../../billing/top-ups.ts";
import type { Statements } from "../../db/statements.ts";
import { type NanoUsd, nanoUsdOfColumn } from "../../money/nano-usd.ts";
import type { TopUpView } from "../credit/credit.ts";

/** A top-up as operators see it. */
export interface TopUpWaiting extends TopUpView {
	readonly accountId: string;
	readonly accountEmail: string;
	readonly accountName: string;
	/** What the first operator found at the bank. */
	readonly transactionReference: string | null;
	/** E-mail address of the first operator. */
	readonly firstLookBy: string | null;
	readonly needsSecondLook: boolean;
}

interface Row {
	id: string;
	account_id: string;
	amount_nano_usd: string;
	method: TopUpView["method"];
	reference: string;
	state: TopUpState;
	created_at: Date;
	decided_at: Date | null;
	email: string;
	name: string;
	transaction_reference: string | null;
	first_by: string | null;
}

/** Pending ones oldest first, since customers wait for them; others newest first. */
export async function listWaiting(
	statements: Statements,
	state: TopUpState,
	page: { asked: number; after: string | null },
	secondLookFrom: NanoUsd | null,
): Promise<TopUpWaiting[]> {
	const { asked, after } = page;
	// Each order has its own index: the few pending top-ups are found without reading all.
	const rows = await (state === "pending"
		? statements<Row>`
			select t.*, a.email, a.name, c.transaction_reference, coalesce(u.email, c.first_by) as first_by
			from top_up t join account a on a.id = t.account_id
				left join top_up_check c on c.top_up_id = t.id left join console_user u on u.id = c.first_by
			where t.state = 'pending' and t.id > coalesce(${after}::text, '')
			order by t.id limit ${asked}`
		: statements<Row>`
			select t.*, a.email, a.name, c.transaction_reference, coalesce(u.email, c.first_by) as first_by
			from top_up t join account a on a.id = t.account_id
				left join top_up_check c on c.top_up_id = t.id left join console_user u on u.id = c.first_by
			where t.state = ${state} and (${after}::text is null or t.id < ${after}::text)
			order by t.id desc limit ${asked}`);
	return rows.map((row) => {
		const amountNanoUsd = nanoUsdOfColumn(row.amount_nano_usd);
		return {
			id: row.id,
			amountNanoUsd,
			method: row.method,
			reference: row.reference,
			state: row.state,
			createdAtMs: row.created_at.getTime(),
			decidedAtMs: row.decided_at?.getTime() ?? null,
			accountId: row.account_id,
			accountEmail: row.email,
			accountName: row.name,
			transactionReference: row.transaction_reference,
			firstLookBy: row.first_by,
			needsSecondLook: secondLookFrom !== null && amountNanoUsd >= secondLookFrom,
		};
	});
}
