import { Elysia, t } from "elysia";
import { Fault } from "../../base/fault.ts";
import { languageOf } from "../../base/language.ts";
import { audit } from "../../ops/audit.ts";
import type { AuditAction } from "../../ops/audit-action.ts";
import type { ConsoleParts } from "../console-deps.ts";
import { type Fence, fenceOf } from "../keys/fence-view.ts";
import { ACCOUNT_QUERY } from "../page-query.ts";
import { Refusal } from "../texts/refusal.ts";
import type { InvitationView } from "./invitations.ts";
import { acceptInvitation, invite, listInvitations, withdrawInvitation } from "./invitations.ts";
import { keysMadeBy, type MemberKey, revokeKeysMadeBy, roleOf } from "./member-keys.ts";
import type { MemberView } from "./members.ts";
import { changeMember, checkMember, listMembers, ownersOnly } from "./members.ts";
import { GIVEN_ROLES, type GivenRole, may, ROLE_LABELS, type Role } from "./roles.ts";

const GERMAN_ROLES: Readonly<Record<GivenRole, string>> = {
	owner: "Inhaber",
	admin: "Administrator",
	developer: "Entwickler",
	billing: "Abrechnung",
	viewer: "Betrachter",
};
const query = t.Object(ACCOUNT_QUERY);
const ROLE = t.UnionEnum(GIVEN_ROLES);
const KEYS = t.Optional(t.Union([t.Literal("keep"), t.Literal("revoke")]));
const memberQuery = t.Object({ ...ACCOUNT_QUERY, keys: KEYS });

/** What became of a member's rights: and of the keys whose secrets he has. */
interface RightsTaken {
	readonly revoked: string[];
	readonly fence: Fence | null;
}

/** Who may act for the visited account. */
export function membersRoutes(parts: ConsoleParts) {
	const { statements, visits } = parts;
	const act = (request: Request, action: AuditAction, subject: string, detail: Record<string, unknown> = {}) => {
		const { viewer, accountId } = visits.account(request);
		const ip = visits.of(request).connection.address;
		return audit(statements, { actor: viewer.userId, action, subject, accountId, ip, detail });
	};

	/**
	 * The one way in which a member loses rights: another role, or null for no membership. Where he may use no keys any more,
	 * `choice` says what becomes of those that still work. Faults: not_found, forbidden, conflict.
	 */
	async function change(
		request: Request,
		{ userId, role, choice }: { userId: string; role: Role | null; choice: "keep" | "revoke" | undefined },
	): Promise<RightsTaken> {
		const { accountId, viewer, role: own } = visits.account(request);
		await checkMember(statements, accountId, userId);
		const before = await roleOf(statements, accountId, userId);
		if (!may(own, "owners.manage") && (before === "owner" || role === "owner")) throw ownersOnly();
		const keepsKeys = role !== null && may(role, "keys.change");
		const keys = keepsKeys ? [] : await keysMadeBy(statements, accountId, userId);
		if (keys.length > 0 && choice === undefined)
			throw new Refusal("conflict", "This member made keys that still work: say whether they are kept or revoked.", {
				param: "keys",
			});
		await changeMember(statements, accountId, { userId, by: viewer.userId, role }).catch((error: unknown) => {
			// One that was cut short before the keys were revoked.
			const isOver = error instanceof Fault && error.code === "not_found" && keys.length > 0;
			if (role !== null || !isOver) throw error;
		});
		if (role === null) await act(request, "member.remove", userId, { keys: choice ?? "none" });
		else await act(request, "member.role", userId, { role, keys: keepsKeys ? "kept" : (choice ?? "none") });
		if (keepsKeys || choice !== "revoke") return { revoked: [], fence: null };
		const { ids, entry } = await revokeKeysMadeBy(statements, accountId, userId);
		for (const id of ids) await act(request, "key.revoke", id, { madeBy: userId });
		return { revoked: ids, fence: entry && (await fenceOf(parts, visits.of(request).connection, entry)) };
	}

	return new Elysia({ name: "console-members" })
		.get(
			"/members",
			async ({ request }): Promise<{ items: MemberView[]; invitations: InvitationView[] }> => {
				const { accountId } = visits.account(request);
				const [items, invitations] = await Promise.all([
					listMembers(statements, accountId),
					listInvitations(statements, accountId),
				]);
				return { items, invitations };
			},
			{ query },
		)
		.post(
			"/invitations",
			async ({ request, body }): Promise<{ id: string; link: string | null }> => {
				const { accountId, viewer, role } = visits.account(request);
				if (body.role === "owner" && !may(role, "owners.manage")) throw ownersOnly();
				const made = await invite(statements, accountId, { ...body, invitedBy: viewer.userId });
				const link = `${parts.origin()}/invite?token=${made.token}`;
				const service = parts.brand.serviceName;
				parts.mailer.send({
					to: made.email,
					asked: languageOf(request.headers),
					subject: `An invitation to ${service}`,
					german: {
						subject: `Eine Einladung zu ${service}`,
						text: `${viewer.email} lädt Sie ein, ein Konto mitzubenutzen (Rolle: ${GERMAN_ROLES[body.role]}). Öffnen Sie diesen Link innerhalb von sieben Tagen, angemeldet mit dieser Adresse:\n\n${link}\n`,
					},
					text: `${viewer.email} invites you to share an account (${ROLE_LABELS[body.role]}). Open this link within seven days, signed in with this address, to join:\n\n${link}\n`,
					link,
				});
				await act(request, "member.invite", made.id, { email: made.email, role: body.role });
				return { id: made.id, link: parts.config.smtpUrl === null ? link : null };
			},
			{ query, body: t.Object({ email: t.String({ maxLength: 320 }), role: ROLE }) },
		)
		.delete(
			"/invitations/:id",
			async ({ request, params }) => {
				const { accountId, role } = visits.account(request);
				await withdrawInvitation(statements, accountId, params.id, role);
				await act(request, "member.uninvite", params.id);
				return { withdrawn: true };
			},
			{ query },
		)
		.post(
			"/invitations/accept",
			async ({ request, body }) => {
				const viewer = visits.viewer(request);
				if (!viewer.emailVerified) throw new Refusal("forbidden", "Confirm your e-mail address first.");
				const accountId = await acceptInvitation(statements, body.token, viewer);
				const ip = visits.of(request).connection.address;
				await audit(statements, { actor: viewer.userId, action: "member.join", subject: viewer.userId, accountId, ip });
				return { accountId };
			},
			// Of any form: one that was cut on its way is a link that does not hold, and is told so.
			{ body: t.Object({ token: t.String({ maxLength: 1_000 }) }) },
		)
		.get(
			"/members/:userId/keys",
			async ({ request, params }): Promise<{ items: MemberKey[] }> => {
				const { accountId } = visits.account(request);
				await checkMember(statements, accountId, params.userId);
				return { items: await keysMadeBy(statements, accountId, params.userId) };
			},
			{ query },
		)
		.patch(
			"/members/:userId",
			async ({ request, params, query, body }): Promise<RightsTaken & { role: Role }> => {
				const taken = await change(request, { userId: params.userId, role: body.role, choice: query.keys });
				return { role: body.role, ...taken };
			},
			{ query: memberQuery, body: t.Object({ role: ROLE }) },
		)
		.delete(
			"/members/:userId",
			async ({ request, params, query }): Promise<RightsTaken & { removed: true }> => {
				const taken = await change(request, { userId: params.userId, role: null, choice: query.keys });
				return { removed: true, ...taken };
			},
			{ query: memberQuery },
		);
}
