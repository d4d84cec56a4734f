import { Elysia, t } from "elysia";
import type { Fault } from "../../base/fault.ts";
import { newId } from "../../base/id.ts";
import { requestLanguage } from "../../base/language.ts";
import { isMailAddress, mailboxWithoutTag } from "../../base/mail-address.ts";
import type { TextId, TextValues } from "../../base/translate.ts";
import { type Statements, toView } from "../../db/statements.ts";
import { derivedHex } from "../../keys/secret.ts";
import { type AuditNote, auditNote, auditNotesJson } from "../../ops/audit.ts";
import { ACCOUNT_QUERY, type Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { PermittedMember } from "../console-session.ts";
import { claimIdOnPage, TOKEN_FIELD } from "../page-claim.ts";
import { countWithin } from "../rate-counter.ts";
import { hashToken, newToken } from "../sign-in/token.ts";
import { ROLE_LABELS, ROLES, type Role, rightToManage, roleHasRight, rolesJson } from "./roles.ts";

export interface InvitationView {
	readonly id: string;
	readonly email: string;
	readonly role: Role;
	readonly expiresAtMs: number;
}

const INVITATION_DAYS = 7;
const INVITATIONS_MAX = 50;
const MAILS_TO_ADDRESS_MAX = 5;
const MAILS_OF_ACCOUNT_MAX = 50;
const DAY_MS = 24 * 3600_000;

export async function listInvitations(statements: Statements, accountId: string): Promise<InvitationView[]> {
	const rows = await statements<object>`
		select id, email, role, expires_at from invitation
		where account_id = ${accountId} and expires_at > clock_timestamp() order by id desc limit ${INVITATIONS_MAX}`;
	return rows.map(toView<InvitationView>);
}

export interface PlannedInvitation {
	readonly id: string;
	readonly token: string;
}

/**
 * Invites an address; only the mail contains the token. A second invitation of the address replaces the first. `isNew`
 * is true if no mail was sent yet. Faults `invalid_request`, `conflict`, `rate_limit_exceeded`.
 */
export async function sendInvitation(
	statements: Statements,
	accountId: string,
	invitation: { email: string; role: Role; invitedBy: string },
	act?: AuditNote,
	{ id, token }: PlannedInvitation = { id: newId("inv"), token: newToken() },
): Promise<PlannedInvitation & { email: string; isNew: boolean }> {
	const email = invitation.email.trim().toLowerCase();
	if (!isMailAddress(email))
		throw new ConsoleError("invalid_request", "Enter a valid email address.", { param: "email" });
	if (await isOpen(statements, id)) return { id, token, email, isNew: false };
	await countMail(statements, accountId, email);
	await statements`delete from invitation where expires_at < clock_timestamp()`;
	const [row] = await statements<{ id: string }>`
		with made as (insert into invitation (id, account_id, email, role, token_hash, invited_by, expires_at)
		select ${id}::text, a.id, ${email}::text, ${invitation.role}::text, ${hashToken(token)}::text, ${invitation.invitedBy}::text,
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
		select id, audit_note(${auditNotesJson(act)}::text::jsonb, id, ${accountId}) from made`;
	if (row === undefined && (await isOpen(statements, id))) return { id, token, email, isNew: false };
	if (row === undefined)
		throw new ConsoleError(
			"conflict",
			"This person is already a member, is already invited as an owner, or too many invitations are open.",
		);
	return { id, token, email, isNew: true };
}

async function isOpen(statements: Statements, id: string): Promise<boolean> {
	return (await statements`select 1 from invitation where id = ${id} and expires_at > clock_timestamp()`).length > 0;
}

async function countMail(statements: Statements, accountId: string, email: string): Promise<void> {
	const refuse = (text: TextId, endsInMs: number, values: TextValues = {}) =>
		new ConsoleError("rate_limit_exceeded", text, { values, param: "email", retryAfterS: Math.ceil(endsInMs / 1000) });
	const ofAccount = await countWithin(statements, "invitations of", accountId, DAY_MS);
	if (ofAccount.count > MAILS_OF_ACCOUNT_MAX)
		throw refuse("An account can send {count} invitations a day. Try again tomorrow.", ofAccount.endsInMs, {
			count: MAILS_OF_ACCOUNT_MAX,
		});
	const toAddress = await countWithin(statements, "invitations to", mailboxWithoutTag(email), DAY_MS);
	if (toAddress.count > MAILS_TO_ADDRESS_MAX)
		throw refuse("This address has reached its daily limit of invitations. Try again tomorrow.", toAddress.endsInMs);
}

async function withdrawInvitation(statements: Statements, accountId: string, id: string, by: Role, act?: AuditNote) {
	const owners = roleHasRight(by, "owners.manage");
	const rows = await statements`
		with gone as (
			delete from invitation where id = ${id} and account_id = ${accountId} and (role <> 'owner' or ${owners}::boolean) returning id
		)
		select audit_note(${auditNotesJson(act)}::text::jsonb, id, ${accountId}) from gone`;
	if (rows.length === 0) throw new ConsoleError("not_found", "There is no such invitation.");
}

/**
 * Uses up an invitation for the person with the invited, verified address, if the inviter still has the right to
 * invite. A single statement, so that it cannot overtake a concurrent removal of that right. Fault `not_found`.
 */
async function acceptInvitation(
	statements: Statements,
	token: string,
	user: { userId: string; email: string },
	act?: AuditNote,
): Promise<string> {
	const [row] = await statements<{ account_id: string }>`
		with i as (
			delete from invitation i where token_hash = ${hashToken(token)} and email = ${user.email.toLowerCase()} and expires_at > clock_timestamp()
				and exists (select 1 from member w where w.account_id = i.account_id and w.user_id = i.invited_by
					and jsonb_exists(case when i.role = 'owner' then ${rolesJson("owners.manage")}::text::jsonb
						else ${rolesJson("members.manage")}::text::jsonb end, w.role))
			returning account_id, role
		), m as (
			insert into member (user_id, account_id, role) select ${user.userId}, account_id, role from i on conflict do nothing
		)
		select account_id, audit_note(${auditNotesJson(act)}::text::jsonb, ${user.userId}, account_id) from i`;
	if (row === undefined)
		throw new ConsoleError("not_found", "This invitation is no longer valid, or was sent to another address.");
	return row.account_id;
}

const INVITED = t.Object({ email: t.String({ maxLength: 320 }), role: t.UnionEnum(ROLES), token: TOKEN_FIELD });

export function invitationRoutes(
	parts: Parts<"statements" | "clock" | "config" | "brand" | "keyMaker" | "mailer" | "sessions" | "origin">,
) {
	const { statements, sessions } = parts;

	return new Elysia({ name: "console-invitations" })
		.post(
			"/invitations/accept",
			async ({ request, body }) => {
				const viewer = sessions.viewer(request);
				if (!viewer.emailVerified) throw new ConsoleError("forbidden", "Confirm your email address first.");
				const ip = sessions.of(request).connection.address;
				const act = auditNote({ actor: viewer.userId, action: "member.join", ip });
				return { accountId: await acceptInvitation(statements, body.token, viewer, act) };
			},
			// Accepts a text of any form, so that a truncated token gets the message about an invalid link.
			{ body: t.Object({ token: t.String({ maxLength: 1_000 }) }) },
		)
		.guard(ACCOUNT_QUERY)
		.resolve(({ request }) => ({ member: sessions.account(request) }))
		.post(
			"/invitations",
			async ({ member, request, body }): Promise<{ id: string; link: string | null }> => {
				const { accountId, viewer, role } = member;
				if (body.role === "owner" && !roleHasRight(role, "owners.manage")) throw ownersOnly();
				const act = member.noted("member.invite", { email: body.email.trim().toLowerCase(), role: body.role });
				const wanted = { email: body.email, role: body.role, invitedBy: viewer.userId };
				const planned = await plannedInvitation(parts, member, body);
				const made = await sendInvitation(statements, accountId, wanted, act, planned);
				const link = `${parts.origin()}/invite?token=${made.token}`;
				const service = parts.brand.serviceName;
				if (made.isNew)
					parts.mailer.send({
						...{ to: made.email, asked: requestLanguage(request.headers), link },
						subject: { id: "An invitation to {service}", values: { service } },
						paragraphs: [
							{
								id: "{email} invited you to join an account ({role}). To accept, open this link within seven days, signed in with this address:",
								values: { email: viewer.email, role: ROLE_LABELS[body.role] },
							},
							link,
						],
					});
				return { id: made.id, link: parts.config.mail === null ? link : null };
			},
			{ body: INVITED },
		)
		.delete("/invitations/:id", async ({ member: { accountId, role, noted }, params }) => {
			await withdrawInvitation(statements, accountId, params.id, role, noted("member.uninvite"));
			return { withdrawn: true };
		});
}

/** Derives the link's token from the page's token, so that a retry gets the same link. */
async function plannedInvitation(
	parts: Parts<"clock" | "keyMaker">,
	allowed: PermittedMember,
	{ token, ...asked }: { email: string; role: Role; token?: string },
): Promise<PlannedInvitation> {
	const id = await claimIdOnPage(parts, allowed, { fresh: newId("inv"), token, asked });
	const { accountId, viewer } = allowed;
	const words = [accountId, viewer.userId, token ?? crypto.randomUUID()];
	const hex = derivedHex(parts.keyMaker.digest, "invitation on a page", ...words);
	return { id, token: Buffer.from(hex.slice(0, 64), "hex").toString("base64url") };
}

export const ownersOnly = (): Fault => new ConsoleError("forbidden", "Only owners can add, change or remove owners.");
