import { Elysia, t } from "elysia";
import { newId } from "../../base/id.ts";
import { languageOf } from "../../base/language.ts";
import { derivedHex } from "../../keys/digest.ts";
import { noted } from "../../ops/audit.ts";
import { claimedOnPage, TOKEN } from "../claimed-on-page.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { Allowed } from "../console-session.ts";
import { ACCOUNT_QUERY } from "../page-query.ts";
import { acceptInvitation, invite, type PlannedInvitation, withdrawInvitation } from "./invitations.ts";
import { ownersOnly } from "./members.ts";
import { may, ROLE_LABELS, ROLES, type Role } from "./roles.ts";

const query = t.Object(ACCOUNT_QUERY);
const INVITED = t.Object({ email: t.String({ maxLength: 320 }), role: t.UnionEnum(ROLES), token: TOKEN });

/** Invitations to the visited account, and their acceptance. */
export function invitationRoutes(
	parts: Parts<"statements" | "clock" | "config" | "brand" | "keyMaker" | "mailer" | "sessions" | "origin">,
) {
	const { statements, sessions } = parts;

	return new Elysia({ name: "console-invitations" })
		.post(
			"/invitations/accept",
			async ({ request, body }) => {
				const viewer = sessions.viewer(request);
				if (!viewer.emailVerified) throw new ConsoleError("forbidden", "Confirm your e-mail address first.");
				const ip = sessions.of(request).connection.address;
				const act = noted({ actor: viewer.userId, action: "member.join", ip });
				const accountId = await acceptInvitation(statements, body.token, viewer, act);
				return { accountId };
			},
			// Any text: a truncated token gets the usual message about an invalid link.
			{ body: t.Object({ token: t.String({ maxLength: 1_000 }) }) },
		)
		.resolve(({ request }) => ({ member: sessions.account(request) }))
		.post(
			"/invitations",
			async ({ member, request, body }): Promise<{ id: string; link: string | null }> => {
				const { accountId, viewer, role } = member;
				if (body.role === "owner" && !may(role, "owners.manage")) throw ownersOnly();
				const act = member.noted("member.invite", { email: body.email.trim().toLowerCase(), role: body.role });
				const wanted = { email: body.email, role: body.role, invitedBy: viewer.userId };
				const made = await invite(statements, accountId, wanted, act, await plannedInvitation(parts, member, body));
				const link = `${parts.origin()}/invite?token=${made.token}`;
				if (made.isNew) mailInvitation(parts, request, { to: made.email, role: body.role, link });
				return { id: made.id, link: parts.config.mail === null ? link : null };
			},
			{ query, body: INVITED },
		)
		.delete(
			"/invitations/:id",
			async ({ member: { accountId, role, noted }, params }) => {
				await withdrawInvitation(statements, accountId, params.id, role, noted("member.uninvite"));
				return { withdrawn: true };
			},
			{ query },
		);
}

/** The token of the link is derived from the page's token, like keys' secrets: a retry gets the same link. */
async function plannedInvitation(
	parts: Parts<"clock" | "keyMaker">,
	allowed: Allowed,
	{ token, ...asked }: { email: string; role: Role; token?: string },
): Promise<PlannedInvitation> {
	const id = await claimedOnPage(parts, allowed, { fresh: newId("inv"), token, asked });
	const { accountId, viewer } = allowed;
	const words = [accountId, viewer.userId, token ?? crypto.randomUUID()];
	const hex = derivedHex(parts.keyMaker.digest, "invitation on a page", ...words);
	return { id, token: Buffer.from(hex.slice(0, 64), "hex").toString("base64url") };
}

function mailInvitation(
	{ sessions, mailer, brand }: Parts<"brand" | "mailer" | "sessions">,
	request: Request,
	{ to, role, link }: { to: string; role: Role; link: string },
): void {
	const { viewer } = sessions.account(request);
	const service = brand.serviceName;
	mailer.send({
		to,
		asked: languageOf(request.headers),
		subject: { id: "An invitation to {service}", values: { service } },
		paragraphs: [
			{
				id: "{email} invites you to share an account ({role}). Open this link within seven days, signed in with this address, to join:",
				values: { email: viewer.email, role: ROLE_LABELS[role] },
			},
			link,
		],
		link,
	});
}
