import type { Static } from "@sinclair/typebox";
import { Fault } from "../base/fault.ts";
import { isoOrNull, msOfIso } from "../base/iso-date.ts";
import type { Fence } from "../console/keys/fence-view.ts";
import type { Connection } from "../gateway/connection.ts";
import type { ManagementKeyRecord } from "../keys/management-key-admin.ts";
import { type Noted, noted } from "../ops/audit.ts";
import type { AuditAction } from "../ops/audit-action.ts";
import type { ManagementQuery } from "./management-routes.ts";
import type { MANAGEMENT_REQUESTS } from "./management-schemas.ts";

export type RequestName = keyof typeof MANAGEMENT_REQUESTS;
export type RequestOf<Name extends RequestName> = Static<(typeof MANAGEMENT_REQUESTS)[Name]>;

/** A request whose key, scope, query and body are in order. */
export interface ManagementCall {
	readonly connection: Connection;
	readonly caller: ManagementKeyRecord;
	/** The `{id}` of its path; "" where there is none. */
	readonly id: string;
	readonly query: Readonly<Partial<Record<ManagementQuery, string>>>;
	/** As the route's schema has it; `bodyOf` reads it. */
	readonly body: unknown;
	/** The client's for a creation that may be repeated. */
	readonly token: string | null;
	/** The states of `If-Match`; null for any. */
	readonly match: readonly string[] | null;
}

/** What a route answers; `etag` goes into the header, too. */
export type ManagementAnswer = Readonly<Record<string, unknown>> & { readonly etag?: string };

export function bodyOf<Name extends RequestName>(call: ManagementCall, _name: Name): RequestOf<Name> {
	return call.body as RequestOf<Name>;
}

/** What was asked for, without the token: whoever reads the audit log is not to repeat it. */
export function detailOf(call: ManagementCall): Record<string, unknown> {
	const { client_token: _, ...asked } = call.body as Record<string, unknown>;
	return asked;
}

/** Which management key does what, for the audit log: the statement that does it writes it down. */
export function notedAct(
	{ caller, connection }: ManagementCall,
	action: AuditAction,
	detail: Record<string, unknown> = {},
): Noted {
	const by = { actor: caller.id, ip: connection.address };
	return noted({ ...by, action, detail: { ...detail, operator: caller.madeBy } });
}

/** Fault invalid_request, naming the field. */
export function momentOf(text: string, param: string): number {
	const ms = msOfIso(text);
	if (ms === undefined)
		throw new Fault("invalid_request", `\`${param}\` is a time like 2027-01-31T12:00:00Z.`, { param });
	return ms;
}

export function inForceOf({ effective, elapsedMs, effectiveByMs, pendingInstances, known }: Fence) {
	return {
		effective,
		elapsed_ms: elapsedMs,
		effective_by: isoOrNull(effectiveByMs),
		pending_instances: pendingInstances,
		known,
	};
}

const LIMIT_DEFAULT = 50;

export function pageOf({ query }: ManagementCall): { shown: number; asked: number; after: string | null } {
	const shown = query.limit === undefined ? LIMIT_DEFAULT : Number(query.limit);
	return { shown, asked: shown + 1, after: query.after ?? null };
}

/** A page in the shape of all lists here. */
export function listOf(data: readonly ManagementAnswer[], next: string | null): ManagementAnswer {
	return { object: "list", data, next, has_more: next !== null };
}

/** Fault invalid_request. */
export function required({ query }: ManagementCall, name: ManagementQuery): string {
	const value = query[name];
	if (value === undefined) throw new Fault("invalid_request", `\`${name}\` is missing.`, { param: name });
	return value;
}
