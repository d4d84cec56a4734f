import { Elysia, t } from "elysia";
import { STREAM_TIMEOUT_S } from "../../gateway/connection.ts";
import type { Parts } from "../console-deps.ts";
import { operatorSummary } from "../operator/operator-summary.ts";
import { ACCOUNT_QUERY } from "../page-query.ts";
import type { LiveTopic } from "./live-feed.ts";
import { type Overview, overview, overviewPulse } from "./overview.ts";

export function overviewRoutes(parts: Parts<"statements" | "clock" | "config" | "deployments" | "sessions" | "live">) {
	const { statements, sessions, clock, live } = parts;

	function overviewTopic(accountId: string): LiveTopic {
		return { name: `overview ${accountId}`, event: "overview", read: () => overviewPulse(statements, accountId) };
	}
	const operatorTopic: LiveTopic = { name: "operator", event: "operator", read: () => operatorSummary(parts) };

	return new Elysia({ name: "console-overview" })
		.get(
			"/overview",
			({ request }): Promise<Overview> => overview(statements, sessions.account(request).accountId, clock.wallMs()),
			{ query: t.Object(ACCOUNT_QUERY) },
		)
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
			{
				query: t.Object({
					...ACCOUNT_QUERY,
					topics: t.Optional(t.Union([t.Literal("overview"), t.Literal("operator")])),
				}),
			},
		);
}
