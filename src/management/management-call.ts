import { Fault } from "../base/fault.ts";
import { isoOrNull, parseIsoMs } from "../base/iso-date.ts";
import type { AppendedEntry } from "../cluster/control-log.ts";
import { type Parts, parseAmount } from "../console/console-deps.ts";
import type { AuditContext, Fence } from "../console/keys/fence-view.ts";
import type { KeySettings } from "../keys/key-settings.ts";
import { claimCreatedId } from "../keys/management-claim.ts";
import type { ManagementKeyRecord } from "../keys/management-key-admin.ts";
import type { AuditNote } from "../ops/audit.ts";
import { toAnswer } from "./management-answer.ts";
import type { ManagementQuery, ManagementRouteName, RouteBody } from "./management-routes.ts";
import { InForceState } from "./management-schemas.ts";

/** A request whose key, scope, query and body have been checked. */
export interface ManagementCall<Name extends ManagementRouteName = ManagementRouteName> extends AuditContext {
	readonly caller: ManagementKeyRecord;
	/** `{id}` in the path; "" for a path without it. */
	readonly id: string;
	readonly query: Readonly<Partial<Record<ManagementQuery, string>>>;
	readonly body: RouteBody<Name>;
	/** Client token of a creation, for idempotency; null without one. */
	readonly token: string | null;
	/** Entity tags in `If-Match`; null: any state of the object matches. */
	readonly match: readonly string[] | null;
}

/** Body of a route's response. `etag` is also sent as a header. */
export type ManagementAnswer = Readonly<Record<string, unknown>> & { readonly etag?: string };

/** Printable ASCII, as for the `Idempotency-Key` of inference requests. */
const TOKEN = /^[\x21-\x7e]{1,255}$/;
const ETAGS_MAX = 32;

/** Returns the header `Idempotency-Key` or the field `client_token`. Fault `invalid_request` if they differ. */
export function clientToken(headers: Headers, body: unknown): string | null {
	const header = headers.get("idempotency-key");
	const field = (body as { client_token?: string } | undefined)?.client_token ?? null;
	if (header !== null && !TOKEN.test(header))
		throw new Fault("invalid_request", "`Idempotency-Key` must be 1 to 255 printable characters.");
	if (header !== null && field !== null && header !== field)
		throw new Fault("invalid_request", "`Idempotency-Key` and `client_token` differ. Send one of them.", {
			param: "client_token",
		});
	return header ?? field;
}

/**
 * Returns the entity tags in `If-Match` without quotes; null without the header, and for `*`. A weak tag never matches
 * (RFC 9110, 13.1.1). Fault `invalid_request`.
 */
export function ifMatch(headers: Headers): readonly string[] | null {
	const header = headers.get("if-match")?.trim();
	if (header === undefined || header === "*") return null;
	const tags = header.split(",").map((tag) => tag.trim());
	if (tags.length > ETAGS_MAX || !tags.every((tag) => /^(W\/)?"[\x21\x23-\x7e]*"$/.test(tag)))
		throw new Fault("invalid_request", "`If-Match` must contain entity tags as returned in `ETag`.");
	return tags.filter((tag) => tag.startsWith('"')).map((tag) => tag.slice(1, -1));
}

/**
 * Returns the id for a creation: `fresh`, or the id of an earlier call with the same token and content, so that nothing
 * is created twice. Fault `idempotency_mismatch` if the content differs.
 */
export async function claimId({ keyMaker, clock }: Parts<"keyMaker" | "clock">, call: ManagementCall, fresh: string) {
	if (call.token === null) return fresh;
	const { method, url } = call.connection.request;
	const request = JSON.stringify([method, new URL(url).pathname, Object.entries(auditDetail(call)).sort()]);
	const { caller, token } = call;
	return claimCreatedId(keyMaker, { by: caller.id, token, request, subject: fresh, nowMs: clock.wallMs() });
}

/** The body without its token: otherwise readers of the audit log could repeat the call. */
export function auditDetail(call: ManagementCall): Record<string, unknown> {
	const { client_token: _, ...asked } = call.body as Record<string, unknown>;
	return asked;
}

/** Converts request fields to settings; an absent field differs from null. Fault `invalid_request` names the field. */
export function keySettings(given: Omit<RouteBody<"updateKey">, "name">): KeySettings {
	const { cap_usd: cap, cap_period: capPeriod, models, requests_per_minute: rate, concurrency } = given;
	const { tokens_per_minute: tokensPerMinute } = given;
	const { expires_at: expires, project_id: projectId } = given;
	return {
		...(cap === undefined ? {} : { capNanoUsd: cap === null ? null : parseAmount(cap, "cap_usd") }),
		...(capPeriod === undefined ? {} : { capPeriod }),
		...(models === undefined ? {} : { models }),
		...(rate === undefined ? {} : { requestsPerMinute: rate }),
		...(concurrency === undefined ? {} : { concurrencyMax: concurrency }),
		...(tokensPerMinute === undefined ? {} : { tokensPerMinute }),
		...(expires === undefined ? {} : { expiresAtMs: expires === null ? null : momentOf(expires, "expires_at") }),
		...(projectId === undefined ? {} : { projectId }),
	};
}

function momentOf(text: string, param: string): number {
	const ms = parseIsoMs(text);
	if (ms === undefined)
		throw new Fault("invalid_request", `\`${param}\` must be a time such as 2027-01-31T12:00:00Z.`, { param });
	return ms;
}

/** Waits until all instances have applied a change, and adds the result to the response. */
export async function withFence<Answer>(
	{ fence }: Parts<"fence">,
	call: ManagementCall,
	{ entry, act }: { entry: AppendedEntry; act?: AuditNote },
	answer: () => Promise<Answer>,
) {
	const inForce = toFence(await fence(call, entry, act));
	return { ...(await answer()), in_force: inForce };
}

export const toFence = (fence: Fence) =>
	toAnswer(InForceState, fence, { effective_by: isoOrNull(fence.effectiveByMs) });

export const readPage = ({ query: { limit, after } }: ManagementCall) => ({
	after,
	limit: limit === undefined ? undefined : Number(limit),
});

export function listJson(data: readonly ManagementAnswer[], next: string | null): ManagementAnswer {
	return { object: "list", data, next, has_more: next !== null };
}

/** Returns a query parameter. Fault `invalid_request` if it is missing. */
export function queryParam({ query }: ManagementCall, name: ManagementQuery): string {
	const value = query[name];
	if (value === undefined) throw new Fault("invalid_request", `\`${name}\` is missing.`, { param: name });
	return value;
}
