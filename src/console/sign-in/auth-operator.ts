import type { Statements } from "../../db/statements.ts";

/** Ways to a session on which nobody is asked for a second factor: another service says who it is. */
const UNASKED = /^\/(callback|company|oauth2|sign-in\/social|sign-in\/oauth2|one-tap|sso|id-token)/;

/**
 * Whether a session may begin at this path of the sign-in library. Operators come in by password and second factor alone:
 * whoever another service takes for one has given neither.
 */
export async function mayBegin(statements: Statements, userId: string, path: string | undefined): Promise<boolean> {
	if (path === undefined || !UNASKED.test(path)) return true;
	const rows = await statements`select 1 from console_user where id = ${userId} and operator`;
	return rows.length === 0;
}
