import { Elysia, t } from "elysia";
import { ACTIVE_KEYS_MAX, getKey, type KeyRecord, listKeys, revokeKey, updateKey } from "../../keys/key-admin.ts";
import type { KeySettings } from "../../keys/key-settings.ts";
import { ZERO_USD } from "../../money/nano-usd.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { may } from "../members/roles.ts";
import { ACCOUNT_QUERY, EMPTY_BODY, PAGE_QUERY, pageOf } from "../page-query.ts";
import { checkWidening } from "../sign-in/sensitive-acts.ts";
import { KEY_SETTINGS, NAME, settingsOf } from "./key-body.ts";
import { keyMakingRoutes } from "./key-making-routes.ts";
import { heldByKey, type KeyView, keyOf, keyView } from "./key-view.ts";
import { makerIn, ownerOf } from "./usable-keys.ts";
import { wideningOf } from "./widening.ts";

const query = t.Object(ACCOUNT_QUERY);

/** Keys of the visited account; developers see those of `makerIn`. */
export function keyRoutes(parts: Parts<"statements" | "fence" | "clock" | "keyMaker" | "sessions">) {
	const { statements, sessions, clock } = parts;

	return new Elysia({ name: "console-keys", prefix: "/keys" })
		.resolve(({ request }) => ({ member: sessions.account(request) }))
		.use(keyMakingRoutes(parts))
		.get(
			"/",
			async ({ member, query }): Promise<{ items: KeyView[]; next: string | null }> => {
				const { accountId } = member;
				const { shown, after } = pageOf(query);
				const personId = makerIn(member);
				const [page, held] = await Promise.all([
					listKeys(statements, accountId, { limit: shown, after }, { personId, projectId: query.project ?? null }),
					heldByKey(statements, accountId),
				]);
				const nowMs = clock.wallMs();
				return { items: page.items.map((key) => keyView(key, held.get(key.id), nowMs)), next: page.next };
			},
			{ query: t.Object({ ...PAGE_QUERY, project: t.Optional(t.String({ maxLength: 64 })) }) },
		)
		.get("/:id", async ({ member, params }) => keyOf(parts, await ownerOf(parts, member, params.id), params.id), {
			query,
		})
		.patch(
			"/:id",
			async ({ member, request, params, body }) => {
				const accountId = await ownerOf(parts, member, params.id);
				const settings = settingsOf(body);
				await checkChange(parts, request, await getKey(statements, { id: params.id, accountId }), settings);
				const act = member.noted("key.update", { ...body });
				const entry = await updateKey(statements, { id: params.id, accountId }, settings, null, act, ACTIVE_KEYS_MAX);
				const fence = await parts.fence(member, entry);
				return { key: await keyOf(parts, accountId, params.id), fence };
			},
			{ query, body: t.Object({ name: t.Optional(NAME), ...KEY_SETTINGS }) },
		)
		.post(
			"/:id/revoke",
			async ({ member, params }) => {
				const accountId = await ownerOf(parts, member, params.id);
				const act = member.noted("key.revoke");
				const fence = await parts.fence(member, await revokeKey(statements, { id: params.id, accountId }, act), act);
				const held = await heldByKey(statements, accountId);
				const runningRequests = held.get(params.id)?.requests ?? 0;
				return { key: await keyOf(parts, accountId, params.id), fence, runningRequests };
			},
			{ query, body: EMPTY_BODY },
		);
}

/** Faults forbidden, reauthentication_required. */
async function checkChange(
	parts: Parts<"statements" | "sessions">,
	request: Request,
	key: KeyRecord,
	settings: KeySettings,
): Promise<void> {
	if (settings.capNanoUsd !== undefined || settings.capPeriod !== undefined)
		await checkWidening(parts, request, wideningOf(key, settings));
	if (settings.projectId === undefined || settings.projectId === key.projectId) return;
	const { role } = parts.sessions.account(request);
	if (!may(role, "projects.change"))
		throw new ConsoleError("forbidden", "Owners and admins move keys between projects.", { param: "projectId" });
	// After the move the former project's budget no longer limits the key.
	if (key.projectId !== null) await checkWidening(parts, request, { before: ZERO_USD, cap: null });
}
