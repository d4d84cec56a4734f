import { newId } from "../base/id.ts";
import { createOperator, listOperators } from "../console/operator/operator-admin.ts";
import type { Statements } from "../db/statements.ts";
import { DEMO_EMAIL } from "./demo-account.ts";

export const DEMO_OPERATOR_EMAIL = "operator@localhost";

/**
 * Makes the two who can look at the demo in the console: the customer, whose first visit takes the demo's account over
 * as any owner's does, and an operator. Neither has a password: they sign in by a link.
 */
export async function ensureDemoPeople(statements: Statements): Promise<void> {
	await statements`
		insert into console_user (id, name, email, email_verified) values (${newId("usr")}, 'Demo customer', ${DEMO_EMAIL}, true)
		on conflict (email) do nothing`;
	const operators = await listOperators(statements);
	if (operators.every(({ email }) => email !== DEMO_OPERATOR_EMAIL))
		await createOperator(statements, DEMO_OPERATOR_EMAIL, "link");
}
