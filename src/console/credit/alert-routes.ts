import { Elysia, t } from "elysia";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { nanoUsdOfColumn } from "../../money/nano-usd.ts";
import { touchForAlerts } from "../alerts/alerts.ts";
import type { ConsoleParts } from "../console-deps.ts";
import { memberAct } from "../member-act.ts";
import { ACCOUNT_QUERY, amountOf, USD } from "../page-query.ts";

const query = t.Object(ACCOUNT_QUERY);

/** Below which credit the visited account is told. */
export function alertRoutes(parts: ConsoleParts) {
	const { statements, visits } = parts;
	const act = memberAct(parts);

	return new Elysia({ name: "console-alert" })
		.get("/alert", ({ request }) => readAlert(parts, visits.account(request).accountId), { query })
		.put(
			"/alert",
			async ({ request, body }) => {
				const { accountId } = visits.account(request);
				const threshold = body.usd === null ? null : amountOf(body.usd, "usd");
				if (threshold === null) await statements`delete from credit_alert where account_id = ${accountId}`;
				else
					await statements`
						insert into credit_alert (account_id, threshold_nano_usd) values (${accountId}, ${threshold})
						on conflict (account_id) do update set threshold_nano_usd = excluded.threshold_nano_usd, armed = true`;
				await touchForAlerts(statements, accountId);
				await act(request, "account.alert", accountId, { usd: body.usd });
				return readAlert(parts, accountId);
			},
			{ query, body: t.Object({ usd: t.Nullable(USD) }) },
		);
}

export interface AlertView {
	readonly thresholdNanoUsd: NanoUsd | null;
	readonly lastSentAtMs: number | null;
}

export async function readAlert(
	{ statements }: Pick<ConsoleParts, "statements">,
	accountId: string,
): Promise<AlertView> {
	const [row] = await statements<{ threshold_nano_usd: string; last_sent_at: Date | null }>`
		select threshold_nano_usd, last_sent_at from credit_alert where account_id = ${accountId}`;
	if (row === undefined) return { thresholdNanoUsd: null, lastSentAtMs: null };
	return {
		thresholdNanoUsd: nanoUsdOfColumn(row.threshold_nano_usd),
		lastSentAtMs: row.last_sent_at?.getTime() ?? null,
	};
}
