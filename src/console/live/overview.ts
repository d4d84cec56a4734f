import type { Statements } from "../../db/statements.ts";
import { type NanoUsd, sumOfColumn } from "../../money/nano-usd.ts";
import { type BalanceView, balanceOf } from "../credit/credit.ts";
import { ANY_REQUEST, type LogRow, logPage } from "../log/log-page.ts";
import { DAY_MS, type UsageSeries, usageSeries } from "../usage/usage-query.ts";

/** The four conditions of access. */
export interface Checklist {
	readonly signedIn: boolean;
	readonly toppedUp: boolean;
	readonly keyMade: boolean;
	readonly firstRequest: boolean;
}

/** The changing part of the overview. */
export interface OverviewPulse {
	readonly balance: BalanceView;
	readonly checklist: Checklist;
	/** Since the first of the month, UTC. */
	readonly monthSpentNanoUsd: NanoUsd;
	readonly todaySpentNanoUsd: NanoUsd;
	readonly pendingTopUps: number;
	readonly newest: LogRow[];
}

export interface Overview extends OverviewPulse {
	/** The last 30 days by day and model. */
	readonly chart: UsageSeries;
	readonly topModels: {
		readonly model: string;
		readonly requests: number;
		readonly tokens: number;
		readonly costNanoUsd: NanoUsd;
	}[];
}

const NEWEST_SHOWN = 10;
const TOP_MODELS_SHOWN = 5;
const CHART_DAYS = 30;

interface PulseRow {
	signed_in: boolean;
	topped_up: boolean;
	key_made: boolean;
	used: boolean;
	pending: string;
	month: string;
	today: string;
}

export async function overviewPulse(statements: Statements, accountId: string): Promise<OverviewPulse> {
	const [balance, newest, [row]] = await Promise.all([
		balanceOf(statements, accountId),
		logPage(statements, accountId, ANY_REQUEST, { asked: NEWEST_SHOWN, after: null }),
		statements<PulseRow>`
			select a.signed_in_at is not null as signed_in, a.topped_up,
				exists (select 1 from api_key k where k.account_id = a.id) as key_made,
				-- Of requests that are not kept any more the sums are.
				exists (select 1 from usage_event e where e.account_id = a.id) or exists (select 1 from usage_hour h where h.account_id = a.id) as used,
				(select count(*) from top_up t where t.account_id = a.id and t.state = 'pending') as pending,
				(select coalesce(sum(h.charged_nano_usd), 0) from usage_hour h
					where h.account_id = a.id and h.hour >= date_trunc('month', now(), 'UTC')) as month,
				(select coalesce(sum(h.charged_nano_usd), 0) from usage_hour h
					where h.account_id = a.id and h.hour >= date_trunc('day', now(), 'UTC')) as today
			from account a where a.id = ${accountId}`,
	]);
	return {
		balance,
		checklist: {
			signedIn: row?.signed_in ?? false,
			toppedUp: row?.topped_up ?? false,
			keyMade: row?.key_made ?? false,
			firstRequest: row?.used ?? false,
		},
		monthSpentNanoUsd: sumOfColumn(row?.month ?? 0),
		todaySpentNanoUsd: sumOfColumn(row?.today ?? 0),
		pendingTopUps: Number(row?.pending ?? 0),
		newest,
	};
}

export async function overview(statements: Statements, accountId: string, nowMs: number): Promise<Overview> {
	const [pulse, chart] = await Promise.all([
		overviewPulse(statements, accountId),
		usageSeries(statements, accountId, {
			fromMs: nowMs - (CHART_DAYS - 1) * DAY_MS,
			toMs: nowMs,
			bucket: "day",
			group: "model",
			model: null,
			keyId: null,
			projectId: null,
			status: null,
		}),
	]);
	const topModels = chart.groups.slice(0, TOP_MODELS_SHOWN).map((group) => ({
		model: group.id,
		requests: group.requests,
		tokens: group.promptTokens + group.completionTokens,
		costNanoUsd: group.costNanoUsd,
	}));
	return { ...pulse, chart, topModels };
}
