import { rejectionReasons } from "../../billing/top-up-checks.ts";
import { getTopUp, type TopUpRecord } from "../../billing/top-ups.ts";
import { type Statements, toView } from "../../db/statements.ts";
import { accountBalance } from "../../ledger/balance.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { ConsoleError } from "../console-error.ts";

export type TopUpView = Omit<TopUpRecord, "accountId" | "decidedBy">;

export interface RunningRequest {
	readonly requestId: string;
	readonly keyId: string;
	readonly keyName: string;
	readonly model: string;
	readonly reservedNanoUsd: NanoUsd;
	readonly admittedAtMs: number;
}

const RUNNING_SHOWN_MAX = 200;
const PROMOTIONS_SHOWN_MAX = 100;

export async function readBalance(statements: Statements, accountId: string) {
	const { balance, held, available, spent } = await accountBalance(statements, accountId);
	return { balanceNanoUsd: balance, heldNanoUsd: held, availableNanoUsd: available, spentNanoUsd: spent };
}

export interface Promotion {
	/** Last day (UTC); null: no end. */
	readonly lastDay: string | null;
	readonly leftNanoUsd: NanoUsd;
}

/** Returns unspent promotional credit in the order in which requests spend it. */
export async function listPromotions(statements: Statements, accountId: string): Promise<Promotion[]> {
	const rows = await statements<object>`
		select l.last_day::text, sum(l.left_nano_usd) as left_nano_usd
		from promotion_left(${accountId}, budget_spent(${accountId})) l where l.left_nano_usd > 0
		group by l.last_day order by l.last_day limit ${PROMOTIONS_SHOWN_MAX}`;
	return rows.map(toView<Promotion>);
}

export function topUpView(topUp: TopUpRecord): TopUpView {
	const { accountId: _, decidedBy: __, ...shown } = topUp;
	return shown;
}

export async function ownTopUpViews(statements: Statements, topUps: readonly TopUpRecord[]) {
	const rejected = topUps.filter(({ state }) => state === "rejected");
	const reasons = await rejectionReasons(
		statements,
		rejected.map(({ id }) => id),
	);
	return topUps.map((topUp) => ({
		...topUpView(topUp),
		whyRejected: topUp.state === "rejected" ? (reasons.get(topUp.id) ?? unpaidText(topUp)) : null,
	}));
}

const unpaidText = ({ decidedBy }: TopUpRecord) => (decidedBy === "stripe" ? "It was not paid." : "Cancelled.");

export async function topUpOfAccount(statements: Statements, accountId: string, id: string): Promise<TopUpRecord> {
	const topUp = await getTopUp(statements, id);
	if (topUp.accountId !== accountId)
		throw new ConsoleError("not_found", "There is no top-up {id}.", { values: { id } });
	return topUp;
}

export async function runningRequests(statements: Statements, accountId: string): Promise<RunningRequest[]> {
	const rows = await statements<object>`
		select 'req_' || replace(r.request_id::text, '-', '') as request_id, r.key_id, k.name as key_name, r.model, r.reserved_nano_usd,
			r.admitted_at
		from reservation r join api_key k on k.id = r.key_id
			join instance_now i on i.id = r.instance_id and i.epoch = r.epoch and i.state = 'live' and i.lease_until > clock_timestamp()
		where r.account_id = ${accountId} order by r.admitted_at limit ${RUNNING_SHOWN_MAX}`;
	return rows.map(toView<RunningRequest>);
}
