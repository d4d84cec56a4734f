import type { Statements } from "../../db/statements.ts";
import { rolesJson } from "../members/roles.ts";

/** What an account can ask to hear of, besides its batches. */
export const ALERT_TYPES = [
	"credit.low",
	"key.cap_reached",
	"key.expiring",
	"spend.unusual",
	"top_up.confirmed",
] as const;
export type AlertType = (typeof ALERT_TYPES)[number];

/** In one look, and looks in a row; what is left is there at the next one. */
const ACCOUNTS_MAX = 20;
const LOOKS_MAX = 50;
const EXPIRING_MAX = 200;
const KEPT_DAYS = 400;
const FORGET_ROWS = 1_000;
const ROLES = rolesJson("notices.get");

/** An account whose settings changed is looked at soon. */
export async function touchForAlerts(statements: Statements, accountId: string): Promise<void> {
	await statements`insert into alert_touched (account_id) values (${accountId})`;
}

/** Looks at what changed since the last time, and leaves notices of it. Costs nothing where nothing did. */
export async function lookForAlerts(statements: Statements): Promise<void> {
	for (let looks = 0; looks < LOOKS_MAX; looks++) {
		const [row] = await statements<{
			seen: number;
		}>`select alerts_look(${ACCOUNTS_MAX}, ${ROLES}::text::jsonb) as seen`;
		if ((row?.seen ?? 0) < ACCOUNTS_MAX) return;
	}
}

/** Keys that end within a week. */
export async function lookForExpiring(statements: Statements): Promise<void> {
	await statements`select alerts_expiring(${EXPIRING_MAX}, ${ROLES}::text::jsonb)`;
}

export async function forgetOldMarks(statements: Statements): Promise<void> {
	await statements`
		delete from alert_mark where (account_id, mark) in (
			select account_id, mark from alert_mark where at < now() - make_interval(days => ${KEPT_DAYS}) limit ${FORGET_ROWS})`;
}
