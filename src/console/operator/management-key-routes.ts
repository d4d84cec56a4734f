import { Elysia, t } from "elysia";
import { newId } from "../../base/id.ts";
import { derivedHex } from "../../keys/digest.ts";
import type { ManagementKeyRecord } from "../../keys/management-key-admin.ts";
import { createManagementKey, listManagementKeys, revokeManagementKey } from "../../keys/management-key-admin.ts";
import type { ManagementScope } from "../../keys/management-scope.ts";
import { derivedManagementSecret } from "../../keys/management-secret.ts";
import { claimedOnPage, TOKEN } from "../claimed-on-page.ts";
import type { ConsoleParts } from "../console-deps.ts";
import { EMPTY_BODY, PAGE_QUERY, pageOf } from "../page-query.ts";

/** A management key as the page shows it; for `treaty` its arrays are plain ones. */
export interface ManagementKeyView extends Omit<ManagementKeyRecord, "scopes"> {
	readonly scopes: ManagementScope[];
}

/** Keys of the management interface: made with the password given lately, revoked without it. */
export function managementKeyRoutes(parts: ConsoleParts) {
	const { statements, visits, keyMaker } = parts;
	const maker = (request: Request) => ({
		id: visits.operator(request).userId,
		ip: visits.of(request).connection.address,
	});
	return new Elysia({ name: "console-operator-management-keys" })
		.get(
			"/management-keys",
			async ({ request, query }): Promise<{ items: ManagementKeyView[]; next: string | null }> => {
				visits.operator(request);
				const { shown, after } = pageOf(query);
				const { items, next } = await listManagementKeys(statements, { limit: shown, after });
				return { items: items.map(({ scopes, ...key }) => ({ ...key, scopes: [...scopes] })), next };
			},
			{ query: t.Object(PAGE_QUERY) },
		)
		.post(
			"/management-keys",
			async ({ request, body }): Promise<{ id: string; secret: string }> => {
				const { token, ...asked } = body;
				const viewer = visits.operator(request);
				const id = await claimedOnPage(parts, { viewer }, { fresh: newId("mgk"), token, asked });
				// Of the token, which is stored nowhere: whoever sends it again is told the same.
				const hex = derivedHex(
					keyMaker.digest,
					"management key on a page",
					viewer.userId,
					token ?? crypto.randomUUID(),
				);
				const planned = { id, secret: derivedManagementSecret(keyMaker.serviceName, hex) };
				const wanted = { ...asked, expiresAtMs: asked.expiresAtMs ?? null };
				return createManagementKey(keyMaker, wanted, maker(request), planned);
			},
			{
				body: t.Object({
					name: t.String({ minLength: 1, maxLength: 100 }),
					scopes: t.Array(t.String({ maxLength: 64 }), { minItems: 1, maxItems: 32 }),
					expiresAtMs: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
					token: TOKEN,
				}),
			},
		)
		.post(
			"/management-keys/:id/revoke",
			async ({ request, params }) => {
				await revokeManagementKey(statements, params.id, maker(request));
				return { revoked: true };
			},
			{ body: EMPTY_BODY },
		);
}
