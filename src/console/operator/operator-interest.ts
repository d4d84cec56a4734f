import type { Statements } from "../../db/statements.ts";
import { ConsoleError } from "../console-error.ts";

/**
 * Refuses an operator's act on an account in which the operator may have a personal interest: as present or former
 * member, as invited person, or as the person for whose address the account was created. Fault `forbidden`.
 */
export async function refuseOwnAccount(statements: Statements, operatorId: string, accountId: string | null) {
	if (accountId === null) return;
	const [row] = await statements<{ own: boolean }>`
		select exists (select 1 from member m where m.account_id = ${accountId}::text and m.user_id = ${operatorId}::text)
			or exists (select 1 from console_user u join account a on a.email = u.email
				where u.id = ${operatorId}::text and a.id = ${accountId}::text)
			or exists (select 1 from console_user u join invitation i on i.email = u.email
				where u.id = ${operatorId}::text and i.account_id = ${accountId}::text)
			or exists (select 1 from audit_event e where e.subject = ${operatorId}::text and e.account_id = ${accountId}::text
				and e.action in ('member.join', 'member.remove')) as own`;
	if (row?.own === true)
		throw new ConsoleError("forbidden", "You are or were a member of this account. Another operator must decide.");
}
