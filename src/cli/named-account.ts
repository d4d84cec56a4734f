import { Fault } from "../base/fault.ts";
import type { Statements } from "../db/statements.ts";
import { findAccount } from "../keys/account-admin.ts";

/** The account that an argument or option names, by its id or its e-mail address. Fault not_found. */
export async function namedAccount(statements: Statements, name: string) {
	const account = await findAccount(statements, name);
	if (account === null) throw new Fault("not_found", `There is no account ${name}.`);
	return account;
}
