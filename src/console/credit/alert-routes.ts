import { t } from "elysia";
import { toView } from "../../db/view-of.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { auditNotesJson } from "../../ops/audit.ts";
import { accountRoutes } from "../account-routes.ts";
import type { Parts } from "../console-deps.ts";
import { parseAmount, USD } from "../page-query.ts";

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
			{ body: t.Object({ usd: t.Nullable(USD) }) },
		);
}

export interface AlertView {
	readonly thresholdNanoUsd: NanoUsd | null;
	readonly lastSentAtMs: number | null;
}

export async function readAlert({ statements }: Parts<"statements">, accountId: string): Promise<AlertView> {
	const [row] = await statements<object>`
		select threshold_nano_usd, last_sent_at from credit_alert where account_id = ${accountId}`;
	return row === undefined ? { thresholdNanoUsd: null, lastSentAtMs: null } : toView<AlertView>(row);
}
