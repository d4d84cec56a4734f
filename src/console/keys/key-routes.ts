import { Elysia, t } from "elysia";
import type { CapPeriod } from "../../keys/cap-period.ts";
import { CAP_PERIODS } from "../../keys/cap-period.ts";
import type { KeyRecord } from "../../keys/key-admin.ts";
import { checkKeyCount, createKey, getKey, listKeys, revokeKey, rotateKey, updateKey } from "../../keys/key-admin.ts";
import type { KeySettings } from "../../keys/key-settings.ts";
import { ZERO_USD } from "../../money/nano-usd.ts";
import { audit } from "../../ops/audit.ts";
import type { AuditAction } from "../../ops/audit-action.ts";
import type { ConsoleParts } from "../console-deps.ts";
import { roleOf } from "../members/member-keys.ts";
import { may } from "../members/roles.ts";
import { ACCOUNT_QUERY, amountOf, EMPTY_BODY, PAGE_QUERY, pageOf, USD } from "../page-query.ts";
import { checkWidening } from "../sign-in/sensitive-acts.ts";
import { Refusal } from "../texts/refusal.ts";
import type { Fence } from "./fence-view.ts";
import { fenceOf } from "./fence-view.ts";
import type { KeyView } from "./key-view.ts";
import { heldByKey, keyView } from "./key-view.ts";
import { checkPlace, makerIn, usableDigest } from "./usable-keys.ts";
import { wideningOf } from "./widening.ts";

const GRACE_MS_MAX = 90 * 24 * 3600 * 1000;

const settings = {
	capUsd: t.Optional(t.Nullable(USD)),
	capPeriod: t.Optional(t.UnionEnum(CAP_PERIODS)),
	models: t.Optional(t.Nullable(t.Array(t.String({ maxLength: 200 }), { maxItems: 200 }))),
	expiresAtMs: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
	requestsPerMinute: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
	concurrencyMax: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
	projectId: t.Optional(t.Nullable(t.String({ maxLength: 64 }))),
};
const name = t.String({ minLength: 1, maxLength: 100 });
const query = t.Object(ACCOUNT_QUERY);

interface SettingsBody {
	name?: string;
	capUsd?: string | null;
	capPeriod?: CapPeriod;
	models?: string[] | null;
	expiresAtMs?: number | null;
	requestsPerMinute?: number | null;
	concurrencyMax?: number | null;
	projectId?: string | null;
}

/** Keys of the visited account: made, listed, changed, rotated and revoked; a developer's are those of `makerIn`. */
export function keyRoutes(parts: ConsoleParts) {
	const { statements, visits, clock, keyMaker } = parts;

	async function view(accountId: string, id: string): Promise<KeyView> {
		const [key, held] = await Promise.all([getKey(statements, { id, accountId }), heldByKey(statements, accountId)]);
		return keyView(key, held.get(id), clock.wallMs());
	}

	/** Who acts on which key, for the audit log. */
	function act(request: Request, action: AuditAction, subject: string, detail: Record<string, unknown>) {
		const { viewer, accountId } = visits.account(request);
		const ip = visits.of(request).connection.address;
		return audit(statements, { actor: viewer.userId, action, subject, accountId, ip, detail });
	}

	/** The account's keys that are this member's. Fault not_found if the key is none of them. */
	async function ownerOf(request: Request, id: string): Promise<string> {
		const allowed = visits.account(request);
		await usableDigest(parts, allowed, id);
		return allowed.accountId;
	}

	/** A key that was made while its maker lost the right to ends before its secret is shown. Faults not_found, forbidden. */
	async function checkMaker(request: Request, id: string): Promise<void> {
		const { viewer, accountId } = visits.account(request);
		const role = await roleOf(statements, accountId, viewer.userId);
		if (role !== undefined && may(role, "keys.change")) return;
		await revokeKey(statements, { id, accountId });
		if (role !== undefined) throw new Refusal("forbidden", "Your role in this account makes no keys any more.");
		throw new Refusal("not_found", "There is no such account.", { param: "account" });
	}

	/** Faults forbidden, reauthentication_required. */
	async function checkChange(request: Request, key: KeyRecord, settings: KeySettings): Promise<void> {
		if (settings.capNanoUsd !== undefined || settings.capPeriod !== undefined)
			await checkWidening(parts, request, wideningOf(key, settings));
		if (settings.projectId === undefined || settings.projectId === key.projectId) return;
		const { role } = visits.account(request);
		if (!may(role, "projects.change"))
			throw new Refusal("forbidden", "Owners and admins move keys between projects.", { param: "projectId" });
		// What it may spend then, its former project has no say in.
		if (key.projectId !== null) await checkWidening(parts, request, { before: ZERO_USD, cap: null });
	}

	return new Elysia({ name: "console-keys", prefix: "/keys" })
		.get(
			"/",
			async ({ request, query }): Promise<{ items: KeyView[]; next: string | null }> => {
				const allowed = visits.account(request);
				const { accountId } = allowed;
				const { shown, after } = pageOf(query);
				const [page, held] = await Promise.all([
					listKeys(
						statements,
						accountId,
						{ limit: shown, after },
						{
							personId: makerIn(allowed),
							projectId: query.project ?? null,
						},
					),
					heldByKey(statements, accountId),
				]);
				const nowMs = clock.wallMs();
				return { items: page.items.map((key) => keyView(key, held.get(key.id), nowMs)), next: page.next };
			},
			{ query: t.Object({ ...PAGE_QUERY, project: t.Optional(t.String({ maxLength: 64 })) }) },
		)
		.get("/:id", async ({ request, params }) => view(await ownerOf(request, params.id), params.id), { query })
		.post(
			"/",
			async ({ request, body }): Promise<{ key: KeyView; secret: string }> => {
				const allowed = visits.account(request);
				const { accountId, viewer } = allowed;
				const { readsOnly = false, ...given } = body;
				if (readsOnly && given.capUsd)
					throw new Refusal("invalid_request", "A key that only reads has no cap.", { param: "capUsd" });
				const settings = settingsOf(given);
				await checkKeyCount(statements, accountId);
				await checkPlace(parts, allowed, settings.projectId ?? null);
				const widening = readsOnly ? { before: ZERO_USD, cap: ZERO_USD } : wideningOf(null, settings);
				await checkWidening(parts, request, widening);
				const made = { ...settings, name: body.name, madeBy: viewer.userId, readsOnly };
				const created = await createKey(keyMaker, accountId, made);
				await act(request, "key.create", created.id, { ...body });
				await checkMaker(request, created.id);
				return { key: await view(accountId, created.id), secret: created.secret };
			},
			{ query, body: t.Object({ name, ...settings, readsOnly: t.Optional(t.Boolean()) }) },
		)
		.patch(
			"/:id",
			async ({ request, params, body }) => {
				const accountId = await ownerOf(request, params.id);
				const settings = settingsOf(body);
				await checkChange(request, await getKey(statements, { id: params.id, accountId }), settings);
				const entry = await updateKey(statements, { id: params.id, accountId }, settings);
				await act(request, "key.update", params.id, { ...body });
				const fence = await fenceOf(parts, visits.of(request).connection, entry);
				return { key: await view(accountId, params.id), fence };
			},
			{ query, body: t.Object({ name: t.Optional(name), ...settings }) },
		)
		.post(
			"/:id/rotate",
			async ({ request, params, body }): Promise<{ key: KeyView; secret: string; replaced: string; fence: Fence }> => {
				const accountId = await ownerOf(request, params.id);
				await checkKeyCount(statements, accountId);
				const made = await rotateKey(keyMaker, { id: params.id, accountId }, body.graceMs, body.token);
				await act(request, "key.rotate", params.id, { replacement: made.id, graceMs: body.graceMs });
				await checkMaker(request, made.id);
				const fence = await fenceOf(parts, visits.of(request).connection, made);
				return { key: await view(accountId, made.id), secret: made.secret, replaced: params.id, fence };
			},
			{
				query,
				body: t.Object({
					graceMs: t.Integer({ minimum: 0, maximum: GRACE_MS_MAX }),
					// Whoever repeats the request with it gets the same secret: an answer can be lost on its way.
					token: t.Optional(t.String({ maxLength: 64 })),
				}),
			},
		)
		.post(
			"/:id/revoke",
			async ({ request, params }) => {
				const accountId = await ownerOf(request, params.id);
				const entry = await revokeKey(statements, { id: params.id, accountId });
				const fence = await fenceOf(parts, visits.of(request).connection, entry);
				await act(request, "key.revoke", params.id, { effective: fence.effective, elapsedMs: fence.elapsedMs });
				const held = await heldByKey(statements, accountId);
				const runningRequests = held.get(params.id)?.requests ?? 0;
				return { key: await view(accountId, params.id), fence, runningRequests };
			},
			{ query, body: EMPTY_BODY },
		);
}

/** Absent stays absent, null stays null. */
function settingsOf(body: SettingsBody): KeySettings {
	const { capUsd, ...rest } = body;
	if (capUsd === undefined) return rest;
	return { ...rest, capNanoUsd: capUsd === null ? null : amountOf(capUsd, "capUsd") };
}
