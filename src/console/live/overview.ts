import { Elysia, t } from "elysia";
import { assert } from "../../base/assert.ts";
import { type Statements, toView } from "../../db/statements.ts";
import { STREAM_TIMEOUT_S } from "../../gateway/connection.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { ACCOUNT_QUERY, type Parts } from "../console-deps.ts";
import { readBalance } from "../credit/credit.ts";
import { ANY_REQUEST, logPage } from "../log/log-page.ts";
import { operatorSummary } from "../operator/operator-summary.ts";
import { DAY_MS, usageSeries } from "../usage/usage-query.ts";
import type { LiveTopic } from "./live-feed.ts";

const NEWEST_SHOWN = 10;
const TOP_MODELS_SHOWN = 5;
const CHART_DAYS = 30;

export function overviewRoutes(parts: Parts<"statements" | "clock" | "config" | "deployments" | "sessions" | "live">) {
	const { statements, sessions, clock, live } = parts;

	function overviewTopic(accountId: string): LiveTopic {
		return { name: `overview ${accountId}`, event: "overview", read: () => readLiveOverview(statements, accountId) };
	}
	const operatorTopic: LiveTopic = { name: "operator", event: "operator", read: () => operatorSummary(parts) };

	return new Elysia({ name: "console-overview" })
		.guard(ACCOUNT_QUERY)
		.get("/overview", ({ request }) => readOverview(statements, sessions.account(request).accountId, clock.wallMs()))
		.get(
			"/live",
			({ request, query }) => {
				const { userId, sessionId } = sessions.viewer(request);
				let accountId: string | null = null;
				const topics: LiveTopic[] = [];
				if (query.topics === "operator") {
					sessions.operator(request);
					topics.push(operatorTopic);
				} else {
					accountId = sessions.allow(request, "account.see").accountId;
					topics.push(overviewTopic(accountId));
				}
				sessions.of(request).connection.setIdleTimeout(STREAM_TIMEOUT_S);
				return live.open(topics, { userId, sessionId, accountId });
			},
			{ query: t.Object({ topics: t.Optional(t.Union([t.Literal("overview"), t.Literal("operator")])) }) },
		);
}

interface Figures extends Readonly<Record<"signedIn" | "toppedUp" | "keyMade" | "firstRequest", boolean>> {
	readonly monthSpentNanoUsd: NanoUsd;
	readonly todaySpentNanoUsd: NanoUsd;
	readonly pendingTopUps: number;
}

export async function readLiveOverview(statements: Statements, accountId: string) {
	const [balance, newest, [row]] = await Promise.all([
		readBalance(statements, accountId),
		logPage(statements, accountId, ANY_REQUEST, { asked: NEWEST_SHOWN, after: null }),
		statements<object>`
			select a.signed_in_at is not null as signed_in, a.topped_up,
				exists (select 1 from api_key k where k.account_id = a.id) as key_made,
				-- Of requests that are not kept any more the sums are.
				exists (select 1 from usage_event e where e.account_id = a.id) or exists (select 1 from usage_hour h where h.account_id = a.id) as first_request,
				(select count(*)::float8 from top_up t where t.account_id = a.id and t.state = 'pending') as pending_top_ups,
				(select coalesce(sum(h.charged_nano_usd), 0) from usage_hour h
					where h.account_id = a.id and h.hour >= date_trunc('month', now(), 'UTC')) as month_spent_nano_usd,
				(select coalesce(sum(h.charged_nano_usd), 0) from usage_hour h
					where h.account_id = a.id and h.hour >= date_trunc('day', now(), 'UTC')) as today_spent_nano_usd
			from account a where a.id = ${accountId}`,
	]);
	assert(row !== undefined, "accounts are never deleted");
	const { signedIn, toppedUp, keyMade, firstRequest, ...figures } = toView<Figures>(row);
	return { balance, checklist: { signedIn, toppedUp, keyMade, firstRequest }, ...figures, newest };
}

export async function readOverview(statements: Statements, accountId: string, nowMs: number) {
	const [pulse, chart] = await Promise.all([
		readLiveOverview(statements, accountId),
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
	const topModels = chart.groups
		.slice(0, TOP_MODELS_SHOWN)
		.map((group) => ({
			model: group.id,
			requests: group.requests,
			tokens: group.promptTokens + group.completionTokens,
			costNanoUsd: group.costNanoUsd,
		}));
	return { ...pulse, chart, topModels };
}
