import { newId } from "../../base/id.ts";
import type { Statements } from "../../db/statements.ts";
import { noted, notedJson } from "../../ops/audit.ts";
import { isMailAddress } from "../mail/mail-address.ts";
import { Refusal } from "../texts/refusal.ts";

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
 * Makes a person an operator, with a verified address: whoever may run this vouches for it. `token`: sets the password
 * once, at `/reset`; null for who can sign in already. Fault invalid_request.
 */
export async function createOperator(
	statements: Statements,
	address: string,
): Promise<{ id: string; token: string | null }> {
	const email = address.trim().toLowerCase();
	if (!isMailAddress(email)) throw new Refusal("invalid_request", "That is no e-mail address.", { param: "email" });
	const [user] = await statements<{ id: string; ready: boolean }>`
		with u as (
			insert into console_user (id, name, email, email_verified, operator)
			values (${newId("usr")}, ${email.slice(0, email.indexOf("@"))}, ${email}, true, true)
			on conflict (email) do update set operator = true, updated_at = clock_timestamp() returning id, email_verified
		)
		select u.id, u.email_verified and exists (select 1 from auth_account a where a.user_id = u.id and a.provider_id = 'credential') as ready,
			audit_note(${notedJson(noted({ ...COMMAND_LINE, action: "operator.create", detail: { email } }))}::text::jsonb, u.id, null) from u`;
	if (user === undefined) throw new Error("an upsert returns its row");
	// A session that began otherwise than operators' do opens nothing of theirs.
	await statements`delete from session where user_id = ${user.id}`;
	if (user.ready) return { id: user.id, token: null };
	// An address that was never confirmed may have been signed up by somebody else: that password and its sessions go.
	await statements`delete from auth_account where user_id = ${user.id}`;
	await statements`delete from two_factor where user_id = ${user.id}`;
	await statements`update console_user set email_verified = true, two_factor_enabled = false where id = ${user.id}`;
	return { id: user.id, token: await passwordToken(statements, user.id) };
}

/** Fault not_found. */
export async function revokeOperator(statements: Statements, address: string): Promise<{ id: string }> {
	const [user] = await statements<{ id: string }>`
		with u as (
			update console_user set operator = false where email = ${address.trim().toLowerCase()} and operator returning id
		)
		select u.id, audit_note(${notedJson(noted({ ...COMMAND_LINE, action: "operator.revoke" }))}::text::jsonb, u.id, null) from u`;
	if (user === undefined) throw new Refusal("not_found", `There is no operator ${address}.`);
	await statements`delete from session where user_id = ${user.id}`;
	return { id: user.id };
}

export async function listOperators(statements: Statements): Promise<OperatorRecord[]> {
	const rows = await statements<{ id: string; email: string; created_at: Date }>`
		select id, email, created_at from console_user where operator order by email limit ${OPERATORS_SHOWN_MAX}`;
	return rows.map(({ id, email, created_at }) => ({ id, email, createdAtMs: created_at.getTime() }));
}

/** A row as the sign-in library makes it for somebody who forgot the password. */
async function passwordToken(statements: Statements, userId: string): Promise<string> {
	const token = Buffer.from(crypto.getRandomValues(new Uint8Array(TOKEN_BYTES))).toString("base64url");
	await statements`
		insert into verification (id, identifier, value, expires_at)
		values (${newId("ver")}, ${`reset-password:${token}`}, ${userId}, clock_timestamp() + make_interval(hours => ${TOKEN_HOURS}::integer))`;
	return token;
}
