import { t } from "elysia";
import { newId } from "../../base/id.ts";
import { CAP_PERIODS } from "../../keys/cap-period.ts";
import {
	ACTIVE_KEYS_MAX,
	createKey,
	getKey,
	type KeyRecord,
	listKeys,
	type PlannedKey,
	revokeKey,
	rotateKey,
	updateKey,
} from "../../keys/key-admin.ts";
import type { KeySettings } from "../../keys/key-settings.ts";
import { derivedHex, derivedSecret, type KeyDigest } from "../../keys/secret.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { accountRoutes, PAGE_QUERY, type Parts, parseAmount, USD_FIELD } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { PermittedMember } from "../console-session.ts";
import { belongsToMember, readRole } from "../members/member-keys.ts";
import { roleHasRight, scopeForRole } from "../members/roles.ts";
import { checkCapRaise } from "./cap-raise.ts";
import type { Fence } from "./fence-view.ts";
import { type KeyView, keyView, readHeldCredit, readKeyView } from "./key-view.ts";

const GRACE_MS_MAX = 90 * 24 * 3600 * 1000;
/** A page's token for one key: if the response is lost, a retry with the same token gets the same secret. */
const TOKEN = t.Optional(t.String({ maxLength: 64 }));

/** Keys of the selected account. A developer sees only those that `makerFilter` allows. */
export function keyRoutes(parts: Parts<"statements" | "fence" | "clock" | "keyMaker" | "sessions">) {
	const { statements, clock } = parts;

	return accountRoutes(parts, "console-keys", "/keys")
		.use(keyMakingRoutes(parts))
		.get(
			"/",
			async ({ member, query }) => {
				const { accountId } = member;
				const [page, held] = await Promise.all([
					listKeys(statements, accountId, query, { personId: makerFilter(member), projectId: query.project ?? null }),
					readHeldCredit("key", statements, accountId),
				]);
				const nowMs = clock.wallMs();
				return { items: page.items.map((key) => keyView(key, held.get(key.id), nowMs)), next: page.next };
			},
			{ query: t.Object({ ...PAGE_QUERY, project: t.Optional(t.String({ maxLength: 64 })) }) },
		)
		.get("/:id", async ({ member, params }) =>
			readKeyView(parts, await checkKeyAccess(parts, member, params.id), params.id),
		)
		.patch(
			"/:id",
			async ({ member, request, params, body }) => {
				const accountId = await checkKeyAccess(parts, member, params.id);
				const settings = parseKeyBody(body);
				await checkChange(parts, request, await getKey(statements, { id: params.id, accountId }), settings);
				const act = member.noted("key.update", { ...body });
				const entry = await updateKey(statements, { id: params.id, accountId }, settings, null, act, ACTIVE_KEYS_MAX);
				const fence = await parts.fence(member, entry);
				return { key: await readKeyView(parts, accountId, params.id), fence };
			},
			{ body: t.Object({ name: t.Optional(NAME_FIELD), ...KEY_SETTINGS }) },
		)
		.post("/:id/revoke", async ({ member, params }) => {
			const accountId = await checkKeyAccess(parts, member, params.id);
			const act = member.noted("key.revoke");
			const fence = await parts.fence(member, await revokeKey(statements, { id: params.id, accountId }, act), act);
			const held = await readHeldCredit("key", statements, accountId);
			const runningRequests = held.get(params.id)?.requests ?? 0;
			return { key: await readKeyView(parts, accountId, params.id), fence, runningRequests };
		});
}

/** Checks that the member may make this change. Faults `forbidden`, `reauthentication_required`. */
async function checkChange(
	parts: Parts<"statements" | "sessions">,
	request: Request,
	key: KeyRecord,
	settings: KeySettings,
): Promise<void> {
	await checkCapRaise(parts, request, key, settings);
	if (settings.projectId === undefined || settings.projectId === key.projectId) return;
	if (!roleHasRight(parts.sessions.account(request).role, "projects.change"))
		throw new ConsoleError("forbidden", "Only owners and admins can move keys between projects.", {
			param: "projectId",
		});
	if (key.projectId !== null) await checkCapRaise(parts, request, null, {});
}

function keyMakingRoutes(parts: Parts<"statements" | "fence" | "clock" | "keyMaker" | "sessions">) {
	const { keyMaker } = parts;

	return accountRoutes(parts, "console-key-making")
		.post(
			"/",
			async ({ member, request, body }): Promise<{ key: KeyView; secret: string }> => {
				const { accountId, viewer } = member;
				const { token, ...asked } = body;
				const { readsOnly = false, ...given } = asked;
				if (readsOnly && given.capUsd)
					throw new ConsoleError("invalid_request", "A read-only key cannot have a cap.", { param: "capUsd" });
				const settings = parseKeyBody(given);
				const planned = await plannedKey(parts, member, token);
				await checkProjectAccess(parts, member, settings.projectId ?? null);
				if (!readsOnly) await checkCapRaise(parts, request, null, settings);
				const made = { ...settings, name: body.name, madeBy: viewer.userId, readsOnly, activeMost: ACTIVE_KEYS_MAX };
				const created = await createKey(keyMaker, accountId, made, planned, member.noted("key.create", asked));
				await checkMaker(parts, member, created.id);
				return { key: await readKeyView(parts, accountId, created.id), secret: created.secret };
			},
			{ body: t.Object({ name: NAME_FIELD, ...KEY_SETTINGS, readsOnly: t.Optional(t.Boolean()), token: TOKEN }) },
		)
		.post(
			"/:id/rotate",
			async ({ member, params, body }): Promise<{ key: KeyView; secret: string; replaced: string; fence: Fence }> => {
				const accountId = await checkKeyAccess(parts, member, params.id);
				const key = { id: params.id, accountId };
				const act = member.noted("key.rotate", { graceMs: body.graceMs });
				const made = await rotateKey(keyMaker, key, body.graceMs, body.token, ACTIVE_KEYS_MAX, act);
				await checkMaker(parts, member, made.id);
				const fence = await parts.fence(member, made);
				return { key: await readKeyView(parts, accountId, made.id), secret: made.secret, replaced: params.id, fence };
			},
			{ body: t.Object({ graceMs: t.Integer({ minimum: 0, maximum: GRACE_MS_MAX }), token: TOKEN }) },
		);
}

/** Derives the secret from token, member and pepper, so that a retry within an hour gets the same secret. */
async function plannedKey(
	{ statements, keyMaker }: Parts<"statements" | "keyMaker">,
	{ accountId, viewer }: Pick<PermittedMember, "accountId" | "viewer">,
	token: string = crypto.randomUUID(),
): Promise<PlannedKey> {
	const hex = derivedHex(keyMaker.digest, "creation on a page", accountId, viewer.userId, token);
	const secret = derivedSecret(keyMaker.serviceName, hex);
	const [made] = await statements<{ id: string }>`
		select id from api_key where digest = ${keyMaker.digest(secret)} and created_at > clock_timestamp() - interval '1 hour'`;
	return { id: made?.id ?? newId("key"), secret };
}

/**
 * Revokes a new key before its secret is shown, if the member lost the right to create keys in the meantime. Faults
 * `not_found`, `forbidden`.
 */
async function checkMaker({ statements }: Parts<"statements">, member: PermittedMember, id: string): Promise<void> {
	const { viewer, accountId } = member;
	const role = await readRole(statements, accountId, viewer.userId);
	const scope = role && scopeForRole(role, "keys.change");
	if (scope === "all" || (scope === "own" && (await belongsToMember(statements, id, viewer.userId)))) return;
	await revokeKey(statements, { id, accountId }, member.noted("key.revoke", { madeBy: viewer.userId }));
	if (role === undefined) throw new ConsoleError("not_found", "There is no such account.", { param: "account" });
	if (scope === undefined) throw new ConsoleError("forbidden", "Your role in this account may no longer create keys.");
	throw new ConsoleError("not_found", "There is no such project.", { param: "projectId" });
}

type Who = Pick<PermittedMember, "accountId" | "viewer" | "scope">;

/**
 * Returns the person whose keys the member may see; null: all keys of the account. A key in a project belongs to every
 * member of that project; another key belongs to its creator.
 */
export const makerFilter = ({ scope, viewer }: Who): string | null => (scope === "own" ? viewer.userId : null);

export async function usableKeyDigest({ statements }: Parts<"statements">, who: Who, id: string): Promise<KeyDigest> {
	const maker = makerFilter(who);
	const [key] = await statements<{ digest: KeyDigest }>`
		select k.digest from api_key k where k.id = ${id} and k.account_id = ${who.accountId}
			and (${maker}::text is null or key_is_of(k, ${maker}::text))`;
	if (key === undefined) throw new ConsoleError("not_found", "There is no such key.", { param: "key" });
	return key.digest;
}

async function checkKeyAccess(parts: Parts<"statements">, who: Who, id: string): Promise<string> {
	await usableKeyDigest(parts, who, id);
	return who.accountId;
}

/**
 * Checks that the member may create a key in this project, or outside projects if null. Members of projects must choose
 * one of their projects. Faults `not_found`, `forbidden`.
 */
async function checkProjectAccess({ statements }: Parts<"statements">, who: Who, projectId: string | null) {
	const maker = makerFilter(who);
	if (maker === null) return;
	const his = await statements<{ id: string }>`
		select project_id as id from project_member where user_id = ${maker} and account_id = ${who.accountId}`;
	if (projectId === null && his.length > 0)
		throw new ConsoleError("forbidden", "You are a member of projects: choose one of them for the key.", {
			param: "projectId",
		});
	if (projectId !== null && !his.some(({ id }) => id === projectId))
		throw new ConsoleError("not_found", "There is no such project.", { param: "projectId" });
}

/** Limits of a key or project in a request body. An absent field keeps its value; null removes the limit. */
export const LIMIT_SETTINGS = {
	capUsd: t.Optional(t.Nullable(USD_FIELD)),
	capPeriod: t.Optional(t.UnionEnum(CAP_PERIODS)),
	models: t.Optional(t.Nullable(t.Array(t.String({ maxLength: 200 }), { maxItems: 200 }))),
	requestsPerMinute: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
	concurrencyMax: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
	tokensPerMinute: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
};
const KEY_SETTINGS = {
	...LIMIT_SETTINGS,
	expiresAtMs: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
	projectId: t.Optional(t.Nullable(t.String({ maxLength: 64 }))),
};
export const NAME_FIELD = t.String({ minLength: 1, maxLength: 100 });

export function parseKeyBody<Body extends { capUsd?: string | null }>(
	body: Body,
): Omit<Body, "capUsd"> & { capNanoUsd?: NanoUsd | null } {
	const { capUsd, ...rest } = body;
	if (capUsd === undefined) return rest;
	return { ...rest, capNanoUsd: capUsd === null ? null : parseAmount(capUsd, "capUsd") };
}
