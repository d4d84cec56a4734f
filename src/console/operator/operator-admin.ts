import { newId } from "../../base/id.ts";
import { isMailAddress } from "../../base/mail-address.ts";
import { type Statements, toView } from "../../db/statements.ts";
import { auditNote, auditNotesJson } from "../../ops/audit.ts";
import { ConsoleError } from "../console-error.ts";
import { isSignInAddress } from "../sign-in/sign-in-address.ts";

export interface OperatorRecord {
	readonly id: string;
	readonly email: string;
	readonly createdAtMs: number;
}

const TOKEN_BYTES = 24;
const TOKEN_HOURS = 24;
const COMMAND_LINE = { actor: "cli", ip: null } as const;
const OPERATORS_SHOWN_MAX = 1_000;

/**
 * Makes a person an operator; the command line calls it. Returns a token with which the person sets a password once, at
 * `/reset`; null if the person can sign in already. `link` is only for the demo. Fault `invalid_request`.
 */
export async function createOperator(
	statements: Statements,
	address: string,
	signsInBy: "password" | "link" = "password",
): Promise<{ id: string; token: string | null }> {
	const email = address.trim().toLowerCase();
	if (!isMailAddress(email))
		throw new ConsoleError("invalid_request", "Enter a valid email address.", { param: "email" });
	if (signsInBy === "password" && !isSignInAddress(email))
		throw new ConsoleError("invalid_request", "This address cannot be used to sign in. Use another one.", {
			param: "email",
		});
	const token = Buffer.from(crypto.getRandomValues(new Uint8Array(TOKEN_BYTES))).toString("base64url");
	const act = auditNote({ ...COMMAND_LINE, action: "operator.create", detail: { email } });
	// Writes the row that the sign-in library writes for a forgotten password.
	const [user] = await statements<{ id: string; ready: boolean }>`
		select made_id as id, ready from operator_create(${newId("usr")}, ${email.slice(0, email.indexOf("@"))}, ${email},
			${newId("ver")}, ${`reset-password:${token}`}, ${TOKEN_HOURS}::integer, ${auditNotesJson(act)}::text::jsonb)`;
	if (user === undefined) throw new Error("a call returns its row");
	return { id: user.id, token: user.ready ? null : token };
}

export async function revokeOperator(statements: Statements, address: string): Promise<{ id: string }> {
	const [user] = await statements<{ id: string }>`
		with u as (
			update console_user set operator = false where email = ${address.trim().toLowerCase()} and operator returning id
		), gone as (
			delete from session s using u where s.user_id = u.id
		)
		select u.id, audit_note(${auditNotesJson(auditNote({ ...COMMAND_LINE, action: "operator.revoke" }))}::text::jsonb, u.id, null) from u`;
	if (user === undefined)
		throw new ConsoleError("not_found", "There is no operator {address}.", { values: { address } });
	return { id: user.id };
}

export async function listOperators(statements: Statements): Promise<OperatorRecord[]> {
	const rows = await statements<object>`
		select id, email, created_at from console_user where operator order by email limit ${OPERATORS_SHOWN_MAX}`;
	return rows.map(toView<OperatorRecord>);
}
