import { Elysia, t } from "elysia";
import { newId } from "../../base/id.ts";
import {
	createManagementKey,
	listManagementKeys,
	type ManagementKeyRecord,
	revokeManagementKey,
} from "../../keys/management-key-admin.ts";
import type { ManagementScope } from "../../keys/management-scope.ts";
import { derivedManagementSecret } from "../../keys/management-secret.ts";
import { derivedHex } from "../../keys/secret.ts";
import { PAGE_QUERY, type Parts } from "../console-deps.ts";
import type { Operator } from "../console-session.ts";
import { claimIdOnPage, TOKEN_FIELD } from "../page-claim.ts";

/** A management key for its page. Arrays are mutable because the typed client (`treaty`) requires it. */
export interface ManagementKeyView extends Omit<ManagementKeyRecord, "scopes"> {
	readonly scopes: ManagementScope[];
}

export function managementKeyRoutes(parts: Parts<"statements" | "clock" | "keyMaker" | "sessions">) {
	const { statements, sessions, keyMaker } = parts;
	const maker = ({ userId, connection }: Operator) => ({ id: userId, ip: connection.address });
	return new Elysia({ name: "console-operator-management-keys", prefix: "/operator" })
		.resolve(({ request }) => ({ operator: sessions.operator(request) }))
		.get(
			"/management-keys",
			async ({ query }): Promise<{ items: ManagementKeyView[]; next: string | null }> => {
				const { items, next } = await listManagementKeys(statements, query);
				return { items: items.map(({ scopes, ...key }) => ({ ...key, scopes: [...scopes] })), next };
			},
			{ query: t.Object(PAGE_QUERY) },
		)
		.post(
			"/management-keys",
			async ({ operator, body }): Promise<{ id: string; secret: string }> => {
				const { token, ...asked } = body;
				const id = await claimIdOnPage(parts, { viewer: operator }, { fresh: newId("mgk"), token, asked });
				const words = [operator.userId, token ?? crypto.randomUUID()];
				const hex = derivedHex(keyMaker.digest, "management key on a page", ...words);
				const planned = { id, secret: derivedManagementSecret(keyMaker.serviceName, hex) };
				const wanted = { ...asked, expiresAtMs: asked.expiresAtMs ?? null };
				return createManagementKey(keyMaker, wanted, maker(operator), planned);
			},
			{
				body: t.Object({
					name: t.String({ minLength: 1, maxLength: 100 }),
					scopes: t.Array(t.String({ maxLength: 64 }), { minItems: 1, maxItems: 32 }),
					expiresAtMs: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
					token: TOKEN_FIELD,
				}),
			},
		)
		.post("/management-keys/:id/revoke", async ({ operator, params }) => {
			await revokeManagementKey(statements, params.id, maker(operator));
			return { revoked: true };
		});
}
