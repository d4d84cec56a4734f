import { parseIsoMs } from "../../base/iso-date.ts";
import { BATCH_ROWS, deleteInBatches, type Statements } from "../../db/statements.ts";
import { rolesJson } from "../members/roles.ts";

export const ALERT_TYPES = [
	"credit.low",
	"key.cap_reached",
	"project.cap_reached",
	"key.expiring",
	"spend.unusual",
	"top_up.confirmed",
	"model.retiring",
	"auto_top_up.stopped",
] as const;
export type AlertType = (typeof ALERT_TYPES)[number];

/** Accounts per check, and checks per run of the job. Remaining accounts are checked in the next run. */
const ACCOUNTS_MAX = 20;
const LOOKS_MAX = 50;
const EXPIRING_MAX = 200;
const RETIRING_ACCOUNTS_MAX = 200;
/** Days before a model's retirement on which notices are sent. */
const RETIRING_DAYS = [7, 30];
const DAY_MS = 86_400_000;
const KEPT_DAYS = 400;
const ROLES = rolesJson("notices.get");

export async function findAlerts(statements: Statements): Promise<void> {
	for (let looks = 0; looks < LOOKS_MAX; looks++) {
		const [row] = await statements<{
			seen: number;
		}>`select alerts_look(${ACCOUNTS_MAX}, ${ROLES}::text::jsonb) as seen`;
		if ((row?.seen ?? 0) < ACCOUNTS_MAX) return;
	}
}

/** Creates notices about stopped automatic top-ups, even for accounts without a subscription. */
export async function notifyAutoTopUps(statements: Statements): Promise<void> {
	await statements`select auto_top_up_tell(${ROLES}::text::jsonb, ${ACCOUNTS_MAX})`;
}

/** Creates notices for keys that expire within a week. */
export async function notifyExpiringKeys(statements: Statements): Promise<void> {
	await statements`select alerts_expiring(${EXPIRING_MAX}, ${ROLES}::text::jsonb)`;
}

/**
 * Creates notices for models that leave the catalogue in 30 or 7 days. Accounts that used a model in the last 30 days
 * get the mail even without a subscription.
 */
export async function notifyRetiringModels(
	statements: Statements,
	models: readonly { readonly id: string; readonly retiresOn?: string }[],
	nowMs: number,
): Promise<void> {
	for (const { id, retiresOn } of models) {
		const leftMs = retiresOn === undefined ? 0 : (parseIsoMs(retiresOn) ?? 0) - nowMs;
		const line = RETIRING_DAYS.find((days) => leftMs <= days * DAY_MS);
		if (retiresOn === undefined || leftMs <= 0 || line === undefined) continue;
		let after: string | null | undefined = "";
		while (typeof after === "string") {
			const [row]: { after: string | null }[] = await statements`
				select alerts_retiring(${id}, ${retiresOn}::text::date, ${line}, ${after}, ${RETIRING_ACCOUNTS_MAX}, ${ROLES}::text::jsonb) as after`;
			after = row?.after;
		}
	}
}

export async function deleteOldAlertMarks(statements: Statements): Promise<void> {
	await deleteInBatches(async () => {
		const rows = await statements`
			delete from alert_mark where (account_id, mark) in (
				select account_id, mark from alert_mark where at < now() - make_interval(days => ${KEPT_DAYS}) limit ${BATCH_ROWS})
			returning 1`;
		return rows.length;
	});
}
