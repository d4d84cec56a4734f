import { Elysia, t } from "elysia";
import { newId } from "../../base/id.ts";
import { derivedHex } from "../../keys/digest.ts";
import { ACTIVE_KEYS_MAX, createKey, type PlannedKey, revokeKey, rotateKey } from "../../keys/key-admin.ts";
import { derivedSecret } from "../../keys/secret.ts";
import { ZERO_USD } from "../../money/nano-usd.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { Allowed } from "../console-session.ts";
import { isKeyOf, roleOf } from "../members/member-keys.ts";
import { scopeOf } from "../members/roles.ts";
import { ACCOUNT_QUERY } from "../page-query.ts";
import { checkWidening } from "../sign-in/sensitive-acts.ts";
import type { Fence } from "./fence-view.ts";
import { KEY_SETTINGS, NAME, settingsOf } from "./key-body.ts";
import { type KeyView, keyOf } from "./key-view.ts";
import { checkPlace, ownerOf } from "./usable-keys.ts";
import { wideningOf } from "./widening.ts";

const GRACE_MS_MAX = 90 * 24 * 3600 * 1000;
const query = t.Object(ACCOUNT_QUERY);
/** A retry with the same token gets the same secret, since a response can be lost. */
const TOKEN = t.Optional(t.String({ maxLength: 64 }));

/** Creates and rotates keys; the response has the secret, once. */
export function keyMakingRoutes(parts: Parts<"statements" | "fence" | "clock" | "keyMaker" | "sessions">) {
	const { sessions, keyMaker } = parts;

	return new Elysia({ name: "console-key-making" })
		.resolve(({ request }) => ({ member: sessions.account(request) }))
		.post(
			"/",
			async ({ member, request, body }): Promise<{ key: KeyView; secret: string }> => {
				const { accountId, viewer } = member;
				const { token, ...asked } = body;
				const { readsOnly = false, ...given } = asked;
				if (readsOnly && given.capUsd)
					throw new ConsoleError("invalid_request", "A key that only reads has no cap.", { param: "capUsd" });
				const settings = settingsOf(given);
				const planned = await plannedKey(parts, member, token);
				await checkPlace(parts, member, settings.projectId ?? null);
				const widening = readsOnly ? { before: ZERO_USD, cap: ZERO_USD } : wideningOf(null, settings);
				await checkWidening(parts, request, widening);
				const made = { ...settings, name: body.name, madeBy: viewer.userId, readsOnly, activeMost: ACTIVE_KEYS_MAX };
				const act = member.noted("key.create", asked);
				const created = await createKey(keyMaker, accountId, made, planned, act);
				await checkMaker(parts, member, created.id);
				return { key: await keyOf(parts, accountId, created.id), secret: created.secret };
			},
			{ query, body: t.Object({ name: NAME, ...KEY_SETTINGS, readsOnly: t.Optional(t.Boolean()), token: TOKEN }) },
		)
		.post(
			"/:id/rotate",
			async ({ member, params, body }): Promise<{ key: KeyView; secret: string; replaced: string; fence: Fence }> => {
				const accountId = await ownerOf(parts, member, params.id);
				const key = { id: params.id, accountId };
				const act = member.noted("key.rotate", { graceMs: body.graceMs });
				const made = await rotateKey(keyMaker, key, body.graceMs, body.token, ACTIVE_KEYS_MAX, act);
				await checkMaker(parts, member, made.id);
				const fence = await parts.fence(member, made);
				return { key: await keyOf(parts, accountId, made.id), secret: made.secret, replaced: params.id, fence };
			},
			{
				query,
				body: t.Object({
					graceMs: t.Integer({ minimum: 0, maximum: GRACE_MS_MAX }),
					token: TOKEN,
				}),
			},
		);
}

/**
 * The secret is derived from the token, the sender and the pepper, and not stored. For an hour a retry gets the same
 * secret, and no second key is created.
 */
async function plannedKey(
	{ statements, keyMaker }: Parts<"statements" | "keyMaker">,
	{ accountId, viewer }: Pick<Allowed, "accountId" | "viewer">,
	token: string = crypto.randomUUID(),
): Promise<PlannedKey> {
	const hex = derivedHex(keyMaker.digest, "creation on a page", accountId, viewer.userId, token);
	const secret = derivedSecret(keyMaker.serviceName, hex);
	const [made] = await statements<{ id: string }>`
		select id from api_key where digest = ${keyMaker.digest(secret)} and created_at > clock_timestamp() - interval '1 hour'`;
	return { id: made?.id ?? newId("key"), secret };
}

/**
 * Revokes a new key whose maker lost the right in the account or the project during the creation, before its secret is
 * shown. Faults not_found, forbidden.
 */
async function checkMaker({ statements }: Parts<"statements">, member: Allowed, id: string): Promise<void> {
	const { viewer, accountId } = member;
	const role = await roleOf(statements, accountId, viewer.userId);
	const scope = role && scopeOf(role, "keys.change");
	if (scope === "all" || (scope === "own" && (await isKeyOf(statements, id, viewer.userId)))) return;
	await revokeKey(statements, { id, accountId }, member.noted("key.revoke", { madeBy: viewer.userId }));
	if (role === undefined) throw new ConsoleError("not_found", "There is no such account.", { param: "account" });
	if (scope === undefined) throw new ConsoleError("forbidden", "Your role in this account makes no keys any more.");
	throw new ConsoleError("not_found", "There is no such project.", { param: "projectId" });
}
