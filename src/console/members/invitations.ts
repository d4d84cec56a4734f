import { newId } from "../../base/id.ts";
import { isMailAddress, mailboxOf } from "../../base/mail-address.ts";
import type { TextId, TextValues } from "../../base/translate.ts";
import type { Statements } from "../../db/statements.ts";
import { viewOf } from "../../db/view-of.ts";
import { type Noted, notedJson } from "../../ops/audit.ts";
import { ConsoleError } from "../console-error.ts";
import { countWithin } from "../rate-counter.ts";
import { hashOf, newToken } from "../sign-in/token.ts";
import { may, type Role, rightToManage, rolesJson } from "./roles.ts";

export interface InvitationView {
	readonly id: string;
	readonly email: string;
	readonly role: Role;
	readonly expiresAtMs: number;
}

const INVITATION_DAYS = 7;
const INVITATIONS_MAX = 50;
/** Invitation mails per day: to one address from all accounts, and from one account. */
const MAILS_TO_ADDRESS_MAX = 5;
const MAILS_OF_ACCOUNT_MAX = 50;
const DAY_MS = 24 * 3600_000;

export async function listInvitations(statements: Statements, accountId: string): Promise<InvitationView[]> {
	const rows = await statements<object>`
		select id, email, role, expires_at from invitation
		where account_id = ${accountId} and expires_at > clock_timestamp() order by id desc limit ${INVITATIONS_MAX}`;
	return rows.map(viewOf<InvitationView>);
}

/** Id stored beforehand, so that a retry creates no second invitation. */
export interface PlannedInvitation {
	readonly id: string;
	/** Token of the link. */
	readonly token: string;
}

/**
 * The token is in the mail only; inviting an address again replaces its invitation. `isNew`: no mail was sent yet.
 * Faults: invalid_request, conflict, and rate_limit_exceeded, since each is a mail that the recipient did not request.
 */
export async function invite(
	statements: Statements,
	accountId: string,
	invitation: { email: string; role: Role; invitedBy: string },
	act?: Noted,
	{ id, token }: PlannedInvitation = { id: newId("inv"), token: newToken() },
): Promise<PlannedInvitation & { email: string; isNew: boolean }> {
	const email = invitation.email.trim().toLowerCase();
	if (!isMailAddress(email))
		throw new ConsoleError("invalid_request", "That is no e-mail address.", { param: "email" });
	if (await isOpen(statements, id)) return { id, token, email, isNew: false };
	await countMail(statements, accountId, email);
	await statements`delete from invitation where expires_at < clock_timestamp()`;
	const [row] = await statements<{ id: string }>`
		with made as (insert into invitation (id, account_id, email, role, token_hash, invited_by, expires_at)
		select ${id}::text, a.id, ${email}::text, ${invitation.role}::text, ${hashOf(token)}::text, ${invitation.invitedBy}::text,
			clock_timestamp() + make_interval(days => ${INVITATION_DAYS}::integer)
		from account a join member w on w.account_id = a.id and w.user_id = ${invitation.invitedBy}::text
		where a.id = ${accountId} and jsonb_exists(${rolesJson(rightToManage(invitation.role))}::text::jsonb, w.role)
			and invitation_room(a.id, ${email}::text, ${INVITATIONS_MAX}::integer)
			and not exists (select 1 from member m join console_user u on u.id = m.user_id where m.account_id = a.id and u.email = ${email}::text)
		for share of w
		on conflict (account_id, email) do update set id = excluded.id, role = excluded.role, token_hash = excluded.token_hash,
			invited_by = excluded.invited_by, expires_at = excluded.expires_at
			where invitation.id <> excluded.id and (invitation.role <> 'owner' or excluded.role = 'owner')
		returning id)
		select id, audit_note(${notedJson(act)}::text::jsonb, id, ${accountId}) from made`;
	if (row === undefined && (await isOpen(statements, id))) return { id, token, email, isNew: false };
	if (row === undefined)
		throw new ConsoleError(
			"conflict",
			"This person is a member already or invited as an owner, or too many invitations are open.",
		);
	return { id, token, email, isNew: true };
}

async function isOpen(statements: Statements, id: string): Promise<boolean> {
	const rows = await statements`select 1 from invitation where id = ${id} and expires_at > clock_timestamp()`;
	return rows.length > 0;
}

/** Counts the account first: an account over its limit does not use up the address's limit. */
async function countMail(statements: Statements, accountId: string, email: string): Promise<void> {
	const refuse = (text: TextId, endsInMs: number, values: TextValues = {}) =>
		new ConsoleError("rate_limit_exceeded", text, {
			values,
			param: "email",
			retryAfterS: Math.ceil(endsInMs / 1000),
		});
	const ofAccount = await countWithin(statements, "invitations of", accountId, DAY_MS);
	if (ofAccount.count > MAILS_OF_ACCOUNT_MAX)
		throw refuse("An account can invite {count} times a day. Try again tomorrow.", ofAccount.endsInMs, {
			count: MAILS_OF_ACCOUNT_MAX,
		});
	const toAddress = await countWithin(statements, "invitations to", mailboxOf(email), DAY_MS);
	if (toAddress.count > MAILS_TO_ADDRESS_MAX)
		throw refuse(
			"This address was sent as many invitations as it can get in a day. Try again tomorrow.",
			toAddress.endsInMs,
		);
}

/** `by` is the role of the revoking member. Fault not_found. */
export async function withdrawInvitation(
	statements: Statements,
	accountId: string,
	id: string,
	by: Role,
	act?: Noted,
): Promise<void> {
	const owners = may(by, "owners.manage");
	const rows = await statements`
		with gone as (
			delete from invitation where id = ${id} and account_id = ${accountId} and (role <> 'owner' or ${owners}::boolean) returning id
		)
		select audit_note(${notedJson(act)}::text::jsonb, id, ${accountId}) from gone`;
	if (rows.length === 0) throw new ConsoleError("not_found", "There is no such invitation.");
}

/**
 * One statement. A token is used once, by the person whose verified address it was sent to, while the inviter still has
 * the right. A concurrent loss of the right does not see a new invitation, so it is checked here. Fault not_found.
 */
export async function acceptInvitation(
	statements: Statements,
	token: string,
	user: { userId: string; email: string },
	act?: Noted,
): Promise<string> {
	const [row] = await statements<{ account_id: string }>`
		with i as (
			delete from invitation i where token_hash = ${hashOf(token)} and email = ${user.email.toLowerCase()} and expires_at > clock_timestamp()
				and exists (select 1 from member w where w.account_id = i.account_id and w.user_id = i.invited_by
					and jsonb_exists(case when i.role = 'owner' then ${rolesJson("owners.manage")}::text::jsonb
						else ${rolesJson("members.manage")}::text::jsonb end, w.role))
			returning account_id, role
		), m as (
			insert into member (user_id, account_id, role) select ${user.userId}, account_id, role from i on conflict do nothing
		)
		select account_id, audit_note(${notedJson(act)}::text::jsonb, ${user.userId}, account_id) from i`;
	if (row === undefined)
		throw new ConsoleError(
			"not_found",
			"This invitation is not valid any more, or was sent to another address than yours.",
		);
	return row.account_id;
}
