import { Fault } from "../../base/fault.ts";
import { newId } from "../../base/id.ts";
import type { Statements } from "../../db/statements.ts";
import { isMailAddress, mailboxOf } from "../mail/mail-address.ts";
import { countWithin } from "../rate-counter.ts";

export type Role = "owner" | "member";

export interface MemberView {
	readonly userId: string;
	readonly name: string;
	readonly email: string;
	readonly role: Role;
	readonly joinedAtMs: number;
}

export interface InvitationView {
	readonly id: string;
	readonly email: string;
	readonly role: Role;
	readonly expiresAtMs: number;
}

const INVITATION_DAYS = 7;
const INVITATIONS_MAX = 50;
/** Mails that invite, a day: to one address from all accounts together, and from one account to whomever. */
const MAILS_TO_ADDRESS_MAX = 5;
const MAILS_OF_ACCOUNT_MAX = 50;
const DAY_MS = 24 * 3600_000;

export async function listMembers(statements: Statements, accountId: string): Promise<MemberView[]> {
	const rows = await statements<{ id: string; name: string; email: string; role: Role; joined_at: Date }>`
		select u.id, u.name, u.email, m.role, m.joined_at from member m join console_user u on u.id = m.user_id
		where m.account_id = ${accountId} order by m.joined_at, u.id limit 500`;
	return rows.map(({ id, name, email, role, joined_at }) => ({
		userId: id,
		name,
		email,
		role,
		joinedAtMs: joined_at.getTime(),
	}));
}

export async function listInvitations(statements: Statements, accountId: string): Promise<InvitationView[]> {
	const rows = await statements<{ id: string; email: string; role: Role; expires_at: Date }>`
		select id, email, role, expires_at from invitation
		where account_id = ${accountId} and expires_at > clock_timestamp() order by id desc limit ${INVITATIONS_MAX}`;
	return rows.map(({ id, email, role, expires_at }) => ({ id, email, role, expiresAtMs: expires_at.getTime() }));
}

/**
 * The token is in the mail alone; inviting an address again replaces its invitation. Faults: invalid_request, conflict, and
 * rate_limit_exceeded, since each is a mail to somebody who did not ask for it.
 */
export async function invite(
	statements: Statements,
	accountId: string,
	invitation: { email: string; role: Role; invitedBy: string },
): Promise<{ id: string; token: string; email: string }> {
	const email = invitation.email.trim().toLowerCase();
	if (!isMailAddress(email)) throw new Fault("invalid_request", "That is no e-mail address.", { param: "email" });
	await countMail(statements, accountId, email);
	const token = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
	const id = newId("inv");
	await statements`delete from invitation where expires_at < clock_timestamp()`;
	const [row] = await statements<{ id: string }>`
		insert into invitation (id, account_id, email, role, token_hash, invited_by, expires_at)
		select ${id}::text, a.id, ${email}::text, ${invitation.role}::text, ${hashOf(token)}::text, ${invitation.invitedBy}::text,
			clock_timestamp() + make_interval(days => ${INVITATION_DAYS}::integer)
		from account a where a.id = ${accountId}
			and (select count(*) from invitation i where i.account_id = a.id) < ${INVITATIONS_MAX}::integer
			and not exists (select 1 from member m join console_user u on u.id = m.user_id where m.account_id = a.id and u.email = ${email}::text)
		on conflict (account_id, email) do update set id = excluded.id, role = excluded.role, token_hash = excluded.token_hash,
			invited_by = excluded.invited_by, expires_at = excluded.expires_at
		returning id`;
	if (row === undefined)
		throw new Fault("conflict", "This person is a member already, or too many invitations are open.");
	return { id, token, email };
}

/** The account first: one that has used up its own does not use up what others may send to the address. */
async function countMail(statements: Statements, accountId: string, email: string): Promise<void> {
	const refuse = (message: string, endsInMs: number) =>
		new Fault("rate_limit_exceeded", message, { param: "email", retryAfterS: Math.ceil(endsInMs / 1000) });
	const ofAccount = await countWithin(statements, "invitations of", accountId, DAY_MS);
	if (ofAccount.count > MAILS_OF_ACCOUNT_MAX)
		throw refuse(`An account can invite ${MAILS_OF_ACCOUNT_MAX} times a day. Try again tomorrow.`, ofAccount.endsInMs);
	const toAddress = await countWithin(statements, "invitations to", mailboxOf(email), DAY_MS);
	if (toAddress.count > MAILS_TO_ADDRESS_MAX)
		throw refuse(
			"This address was sent as many invitations as it can get in a day. Try again tomorrow.",
			toAddress.endsInMs,
		);
}

/** Fault not_found. */
export async function withdrawInvitation(statements: Statements, accountId: string, id: string): Promise<void> {
	const rows = await statements`delete from invitation where id = ${id} and account_id = ${accountId} returning id`;
	if (rows.length === 0) throw new Fault("not_found", "There is no such invitation.");
}

/** One statement: a token is used once, by the person whose verified address it was sent to. Fault not_found. */
export async function acceptInvitation(
	statements: Statements,
	token: string,
	user: { userId: string; email: string },
): Promise<string> {
	const [row] = await statements<{ account_id: string }>`
		with i as (
			delete from invitation where token_hash = ${hashOf(token)} and email = ${user.email.toLowerCase()} and expires_at > clock_timestamp()
			returning account_id, role
		), m as (
			insert into member (user_id, account_id, role) select ${user.userId}, account_id, role from i on conflict do nothing
		)
		select account_id from i`;
	if (row === undefined)
		throw new Fault("not_found", "This invitation is not valid any more, or was sent to another address than yours.");
	return row.account_id;
}

/** Who is a member, or was one before: a removal that was cut short is carried to its end. Fault not_found. */
export async function checkMember(statements: Statements, accountId: string, userId: string): Promise<void> {
	const [row] = await statements`
		select 1 where exists (select 1 from member where account_id = ${accountId} and user_id = ${userId})
			or exists (select 1 from audit_event where subject = ${userId} and account_id = ${accountId} and action = 'member.remove')`;
	if (row === undefined) throw new Fault("not_found", "There is no such member.");
}

/** Faults: not_found; conflict for the last owner. */
export async function removeMember(statements: Statements, accountId: string, userId: string): Promise<void> {
	// Owners are locked first, so that two of them cannot remove each other at the same time.
	const [row] = await statements<{ found: boolean; removed: boolean }>`
		with owners as materialized (
			select user_id from member where account_id = ${accountId} and role = 'owner' order by user_id for update
		), gone as (
			delete from member where account_id = ${accountId} and user_id = ${userId}
				and exists (select 1 from owners where user_id <> ${userId}) returning user_id
		)
		select exists (select 1 from member where account_id = ${accountId} and user_id = ${userId}) as found,
			exists (select 1 from gone) as removed`;
	if (row?.removed) return;
	if (!row?.found) throw new Fault("not_found", "There is no such member.");
	throw new Fault("conflict", "An account keeps at least one owner.");
}

function hashOf(token: string): string {
	return new Bun.CryptoHasher("sha256").update(token).digest("hex");
}
