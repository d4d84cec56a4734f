import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import { type AppendedEntry, type AppendedRow, toEntry } from "../cluster/control-log.ts";
import { type ListPage, type PageQuery, pageBounds, toPageById } from "../db/page.ts";
import { type Statements, throwFault } from "../db/statements.ts";
import { ZERO_USD } from "../money/nano-usd.ts";
import { type AuditNote, auditNotesJson } from "../ops/audit.ts";
import type { ProjectState } from "./key-entry.ts";
import { checkKeySettings, type KeySettings } from "./key-settings.ts";
import { type LimitedRecord, type LimitedRow, toLimitedRecord } from "./limited-record.ts";
import { type DigestFunction, derivedHex, derivedSecret, newSecret, type Secret, shownParts } from "./secret.ts";

const GRACE_MS_MAX = 90 * 24 * 3600 * 1000;
/** Form of the client's token by which a repeated rotation is recognized. */
const ROTATION_TOKEN = /^[0-9A-Za-z-]{16,64}$/;

/** Maximum keys of an account that are neither revoked nor expired. Stops scripts that create keys in a loop. */
export const ACTIVE_KEYS_MAX = 1_000;

/** Dependencies for creating a secret. */
export interface KeyMakerDeps {
	readonly statements: Statements;
	readonly digest: DigestFunction;
	readonly serviceName: string;
}

/** Identifies a key. With an account id, a key of another account counts as unknown. */
export interface KeyRef {
	readonly id: string;
	readonly accountId?: string;
}

/** Id and secret of a key, chosen before its creation, so that a repeated creation makes no second key. */
export interface PlannedKey {
	readonly id: string;
	readonly secret: Secret;
}

/** A key with the settings and spending that its owner may see. */
export interface KeyRecord extends LimitedRecord {
	readonly id: string;
	readonly accountId: string;
	readonly name: string;
	readonly prefix: string;
	readonly lastFour: string;
	readonly state: "active" | "revoked";
	readonly expiresAtMs: number | null;
	readonly readsOnly: boolean;
	readonly projectId: string | null;
	readonly projectName: string | null;
	/** State of the key's project. Requests with keys of an archived project are refused. */
	readonly projectState: ProjectState | null;
	readonly replacedBy: string | null;
	readonly lastUsedAtMs: number | null;
	readonly createdAtMs: number;
	readonly revokedAtMs: number | null;
	/** Entity tag of all changeable fields; it changes with each of them. */
	readonly etag: string;
}

/** State for display, which unlike `state` is not `active` for an expired key. */
export function shownKeyState({ state, expiresAtMs }: KeyRecord, nowMs: number): KeyRecord["state"] | "expired" {
	return state === "active" && expiresAtMs !== null && expiresAtMs <= nowMs ? "expired" : state;
}

/**
 * Creates a key. Only the digest of its secret is stored, so the secret can be shown only now. `seq` is the number of
 * its control entry. Faults: `not_found` (account or project), `invalid_request`, `conflict`.
 */
export async function createKey(
	deps: KeyMakerDeps,
	accountId: string,
	settings: KeySettings & {
		readonly name: string;
		readonly madeBy?: string;
		readonly readsOnly?: boolean;
		/** Maximum number of usable keys of the account; absent: no limit. */
		readonly activeMost?: number;
	},
	{ id, secret }: PlannedKey = { id: newId("key"), secret: newSecret(deps.serviceName) },
	act?: AuditNote,
) {
	checkKeySettings(settings);
	const readsOnly = settings.readsOnly === true;
	const { prefix, lastFour } = shownParts(secret, deps.serviceName);
	const [row] = await deps.statements<{ seq: string }>`
		with k as (
			insert into api_key (id, account_id, name, digest, prefix, last_four, cap_nano_usd, cap_period, models, expires_at, requests_per_minute, concurrency_max, tokens_per_minute, made_by, reads_only, project_id)
			select ${id}::text, a.id, ${settings.name}::text, ${deps.digest(secret)}::text, ${prefix}::text, ${lastFour}::text,
				${readsOnly ? ZERO_USD : (settings.capNanoUsd ?? null)}::bigint, ${readsOnly ? "lifetime" : (settings.capPeriod ?? "lifetime")}::text, ${JSON.stringify(settings.models ?? [])}::text::jsonb,
				to_timestamp(${settings.expiresAtMs ?? null}::double precision / 1000.0),
				${settings.requestsPerMinute ?? null}::integer, ${settings.concurrencyMax ?? null}::integer, ${settings.tokensPerMinute ?? null}::integer, ${settings.madeBy ?? null}::text, ${readsOnly}::boolean,
				project_for_key(${settings.projectId ?? null}, a.id)
			from account a where a.id = ${accountId} and key_room(a.id, ${id}, ${settings.activeMost ?? null}::integer)
			on conflict do nothing
			returning id, account_id, case when cap_period = 'lifetime' then cap_nano_usd end as lifetime, key_fields(api_key) as fields
		), b as (
			insert into budget (id, kind, account_id, limit_nano_usd) select id, 'key', account_id, lifetime from k returning id
		)
		select control_append('key', k.id, k.fields) as seq, audit_note(${auditNotesJson(act)}::text::jsonb, k.id, k.account_id)
		from k join b using (id)`.catch(throwFault);
	if (row !== undefined) return { id, secret, seq: Number(row.seq) };
	// A key with this id exists: returns it with its secret instead of creating another.
	const [made] = await deps.statements<{ id: string; seq: string }>`
		select id, (select coalesce(max(seq), 0) from control_log) as seq from api_key where account_id = ${accountId}
			and (id = ${id} or digest = ${deps.digest(secret)} and created_at > clock_timestamp() - interval '1 hour')`;
	if (made === undefined) throw new Fault("not_found", "There is no account {id}.", { values: { id: accountId } });
	return { id: made.id, secret, seq: Number(made.seq) };
}

/** Revokes a key; effective when `waitUntilApplied` resolves. Repetitions add entries. Fault `not_found`. */
export async function revokeKey(
	statements: Statements,
	key: KeyRef,
	act?: AuditNote,
): Promise<{ id: string } & AppendedEntry> {
	const [row] = await statements<AppendedRow>`
		with k as (
			update api_key set state = 'revoked', revoked_at = coalesce(revoked_at, clock_timestamp())
			where id = ${key.id} and (${key.accountId ?? null}::text is null or account_id = ${key.accountId ?? null}::text)
			returning id, account_id, key_fields(api_key) as fields
		)
		select control_append('key', k.id, k.fields) as seq, control_at() as at_micros,
			audit_note(${auditNotesJson(act)}::text::jsonb, k.id, k.account_id) from k`;
	if (row === undefined) throw new Fault("not_found", "There is no key {id}.", { values: { id: key.id } });
	return { id: key.id, ...toEntry(row) };
}

/**
 * Creates a replacement with the same settings and an unused cap; the old key ends after `graceMs`. With `token`, the
 * call may be repeated for an hour and returns the same secret, which is derived from token, key and pepper. Faults:
 * `not_found`; `conflict` if the old key is not usable or there are already `activeMost` keys.
 */
export async function rotateKey(
	deps: KeyMakerDeps,
	key: KeyRef,
	graceMs: number,
	token: string = crypto.randomUUID(),
	activeMost: number | null = null,
	act?: AuditNote,
) {
	if (!Number.isSafeInteger(graceMs) || graceMs < 0 || graceMs > GRACE_MS_MAX) {
		throw new Fault("invalid_request", "The grace period must be at most 90 days.", { param: "grace" });
	}
	if (!ROTATION_TOKEN.test(token)) {
		throw new Fault("invalid_request", "The token of a rotation must be 16 to 64 letters, digits and dashes.", {
			param: "token",
		});
	}
	const secret = derivedSecret(deps.serviceName, derivedHex(deps.digest, "rotation", key.id, token));
	const { prefix, lastFour } = shownParts(secret, deps.serviceName);
	// A left join, because an inner join would skip the function, which raises the error for a missing key.
	const [row] = await deps.statements<{ id: string } & AppendedRow>`
		select r.id, r.seq, control_at() as at_micros, audit_note(${auditNotesJson(act)}::text::jsonb, ${key.id}, o.account_id, jsonb_build_object('replacement', r.id))
		from key_rotate(${key.id}, ${key.accountId ?? null}, ${newId("key")}, ${deps.digest(secret)}, ${prefix}, ${lastFour}, ${graceMs}, ${activeMost}::integer) r
			left join api_key o on o.id = ${key.id}`.catch(throwFault);
	assert(row !== undefined, "a rotation says which key it made");
	return { id: row.id, secret, ...toEntry(row) };
}

/**
 * Changes settings; null removes one. With `match` only if the current `etag` is one of them. Faults: `not_found`,
 * `conflict` (revoked; or expired, and there are `activeMost` usable keys), `invalid_request`, `precondition_failed`.
 */
export async function updateKey(
	statements: Statements,
	key: KeyRef,
	changes: KeySettings,
	match: readonly string[] | null = null,
	act?: AuditNote,
	activeMost: number | null = null,
): Promise<{ id: string } & AppendedEntry> {
	checkKeySettings(changes);
	const patch = { ...changes, ...(changes.models === undefined ? {} : { models: changes.models ?? [] }) };
	const [row] = await statements<AppendedRow>`
		select key_update(${key.id}, ${key.accountId ?? null}, ${JSON.stringify(patch)}::text::jsonb,
			${match === null ? null : JSON.stringify(match)}::text::jsonb, ${activeMost}::integer) as seq, control_at() as at_micros,
			audit_note(${auditNotesJson(act)}::text::jsonb, ${key.id},
				(select k.account_id from api_key k where k.id = ${key.id}))`.catch(throwFault);
	assert(row !== undefined, "a change of a key says its entry");
	return { id: key.id, ...toEntry(row) };
}

/** Reads a key. Fault `not_found`. */
export async function getKey(statements: Statements, key: KeyRef): Promise<KeyRecord> {
	const [row] = await statements<Parameters<typeof recordOf>[0]>`
		select k.*, key_etag(k) as etag, budget_spent(k.id) as spent, a.time_zone, clock_timestamp() as now,
			budget_spent(cap_budget(k)) as cap_spent, budget_absent(cap_budget(k)) as absent, p.name as project_name, p.state as project_state
		from api_key k join account a on a.id = k.account_id left join project p on p.id = k.project_id
		where k.id = ${key.id} and (${key.accountId ?? null}::text is null or k.account_id = ${key.accountId ?? null}::text)`;
	if (row === undefined) throw new Fault("not_found", "There is no key {id}.", { values: { id: key.id } });
	return recordOf(row);
}

/** Keys of an account, newest first, including revoked ones. */
export async function listKeys(
	statements: Statements,
	accountId: string,
	page: PageQuery = {},
	{ personId = null, projectId = null }: { readonly personId?: string | null; readonly projectId?: string | null } = {},
): Promise<ListPage<KeyRecord>> {
	const { shown, asked, after } = pageBounds(page);
	const rows = await statements<Parameters<typeof recordOf>[0]>`
		select k.*, key_etag(k) as etag, budget_spent(k.id) as spent, a.time_zone, clock_timestamp() as now,
			budget_spent(cap_budget(k)) as cap_spent, budget_absent(cap_budget(k)) as absent, p.name as project_name, p.state as project_state
		from api_key k join account a on a.id = k.account_id left join project p on p.id = k.project_id
		where k.account_id = ${accountId} and (${after}::text is null or k.id < ${after}::text)
			and (${personId}::text is null or key_is_of(k, ${personId}::text))
			and (${projectId}::text is null or k.project_id = ${projectId}::text)
		order by k.id desc limit ${asked}`;
	return toPageById(rows.map(recordOf), shown);
}

/** The digest of the secret stays in Postgres. */
const recordOf = ({
	digest,
	made_by,
	...row
}: LimitedRow & { readonly digest: string; readonly made_by: string | null }) => toLimitedRecord<KeyRecord>(row);
