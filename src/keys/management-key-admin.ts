import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import { type ListPage, type PageQuery, pageBounds, toPageById } from "../db/page.ts";
import { type Statements, throwFault, toView } from "../db/statements.ts";
import { auditNote, auditNotesJson } from "../ops/audit.ts";
import type { KeyMakerDeps } from "./key-admin.ts";
import { isLabel } from "./key-settings.ts";
import { isManagementScope, MANAGEMENT_SCOPES, type ManagementScope } from "./management-scope.ts";
import {
	type ManagementKeyDigest,
	type ManagementSecret,
	managementDigest,
	newManagementSecret,
	shownOfManagementSecret,
} from "./management-secret.ts";

/** Stands for the creator of keys that were made on the command line, where no user is signed in. */
export const COMMAND_LINE_CREATOR = "cli";

export interface ManagementKeyRecord {
	readonly id: string;
	readonly name: string;
	readonly prefix: string;
	readonly lastFour: string;
	/** `orphaned`: the key's creator is no longer an operator. */
	readonly state: "active" | "expired" | "revoked" | "orphaned";
	readonly scopes: readonly ManagementScope[];
	readonly expiresAtMs: number | null;
	/** Id of the operator who created the key, or `cli`. */
	readonly madeBy: string;
	readonly madeByEmail: string | null;
	readonly createdAtMs: number;
	readonly lastUsedAtMs: number | null;
	readonly revokedAtMs: number | null;
}

export interface NewManagementKey {
	readonly name: string;
	readonly scopes: readonly string[];
	readonly expiresAtMs: number | null;
}

export interface KeyCreator {
	readonly id: string;
	readonly ip: string | null;
}

const NAME_CHARS_MAX = 100;
/** Maximum number of usable keys of the service. Stops scripts that create keys in a loop. */
const ACTIVE_MAX = 200;

const actorOf = ({ id, ip }: KeyCreator) => ({ actor: id, ip });

/** Id and secret of a key, chosen before its creation, so that a repeated creation makes no second key. */
export interface PlannedManagementKey {
	readonly id: string;
	readonly secret: ManagementSecret;
}

/** Creates a key; a repetition within an hour returns the same secret. Faults: `invalid_request`, `conflict`. */
export async function createManagementKey(
	{ statements, digest, serviceName }: KeyMakerDeps,
	{ name, scopes, expiresAtMs }: NewManagementKey,
	maker: KeyCreator,
	{ id, secret }: PlannedManagementKey = { id: newId("mgk"), secret: newManagementSecret(serviceName) },
): Promise<PlannedManagementKey> {
	if (!isLabel(name, NAME_CHARS_MAX))
		throw new Fault("invalid_request", "A name must be one line of 1 to {count} characters.", {
			values: { count: NAME_CHARS_MAX },
			param: "name",
		});
	const wanted = MANAGEMENT_SCOPES.filter((scope) => scopes.includes(scope));
	if (wanted.length === 0 || !scopes.every(isManagementScope))
		throw new Fault("invalid_request", "Scopes must be one or more of {scopes}.", {
			values: { scopes: MANAGEMENT_SCOPES.join(", ") },
			param: "scopes",
		});
	if (expiresAtMs !== null && (!Number.isSafeInteger(expiresAtMs) || expiresAtMs > 253_402_300_799_999))
		throw new Fault("invalid_request", "An expiry must be before the year 10000.", { param: "expires" });
	const { prefix, lastFour } = shownOfManagementSecret(secret, serviceName);
	const act = auditNote({
		...actorOf(maker),
		action: "management_key.create",
		detail: { name, scopes: wanted, expiresAtMs },
	});
	const [made] = await statements`
		with made as (insert into management_key (id, name, digest, prefix, last_four, scopes, expires_at, made_by)
		select ${id}::text, ${name}::text, ${managementDigest(digest, secret)}::text, ${prefix}::text, ${lastFour}::text,
			${JSON.stringify(wanted)}::text::jsonb, to_timestamp(${expiresAtMs}::double precision / 1000.0), ${maker.id}::text
		where management_key_room(${id}::text, ${ACTIVE_MAX}::integer) on conflict (id) do nothing returning id)
		select audit_note(${auditNotesJson(act)}::text::jsonb, id, null) from made`.catch(throwFault);
	if (made === undefined && !(await isYoung(statements, id)))
		throw new Fault("conflict", "The key was created more than an hour ago: its secret is not shown again.");
	return { id, secret };
}

async function isYoung(statements: Statements, id: string): Promise<boolean> {
	const rows = await statements`
		select 1 from management_key where id = ${id} and created_at > clock_timestamp() - interval '1 hour'`;
	return rows.length > 0;
}

/** Revokes a key, effective at once, because every management request reads its key. Idempotent. Fault `not_found`. */
export async function revokeManagementKey(statements: Statements, id: string, by: KeyCreator): Promise<void> {
	const [row] = await statements<{ id: string }>`
		with k as (update management_key set revoked_at = coalesce(revoked_at, clock_timestamp()) where id = ${id} returning id)
		select id, audit_note(${auditNotesJson(auditNote({ ...actorOf(by), action: "management_key.revoke" }))}::text::jsonb, id, null) from k`;
	if (row === undefined) throw new Fault("not_found", "There is no management key {id}.", { values: { id } });
}

/** Management keys, newest first, including revoked ones. */
export async function listManagementKeys(
	statements: Statements,
	page: PageQuery = {},
): Promise<ListPage<ManagementKeyRecord>> {
	const { shown, asked, after } = pageBounds(page);
	const rows = await statements<Row>`
		select k.*, u.email as made_by_email, k.made_by = ${COMMAND_LINE_CREATOR} or coalesce(u.operator, false) as backed, clock_timestamp() as now
		from management_key k left join console_user u on u.id = k.made_by
		where ${after}::text is null or k.id < ${after}::text order by k.id desc limit ${asked}`;
	return toPageById(rows.map(recordOf), shown);
}

/** Finds a key, in any state, by digest or id; null if there is none. */
export async function findManagementKey(
	statements: Statements,
	by: { digest: ManagementKeyDigest } | { id: string },
): Promise<ManagementKeyRecord | null> {
	const [digest, id] = "digest" in by ? [by.digest, null] : [null, by.id];
	const [row] = await statements<Row>`
		select k.*, u.email as made_by_email, k.made_by = ${COMMAND_LINE_CREATOR} or coalesce(u.operator, false) as backed, clock_timestamp() as now
		from management_key k left join console_user u on u.id = k.made_by
		where k.digest = ${digest} or k.id = ${id}`;
	return row === undefined ? null : recordOf(row);
}

/** Records a use of the key, at most once a minute. */
export async function touchManagementKey(statements: Statements, id: string): Promise<void> {
	await statements`
		update management_key set last_used_at = clock_timestamp()
		where id = ${id} and (last_used_at is null or last_used_at < clock_timestamp() - interval '1 minute')`;
}

interface Row {
	readonly digest: string;
	readonly expires_at: Date | null;
	readonly revoked_at: Date | null;
	/** True if the key's creator still has the rights that the key gives. */
	readonly backed: boolean;
	/** The database's time, which decides whether the key has expired. */
	readonly now: Date;
}

function recordOf({ digest, backed, now, ...row }: Row): ManagementKeyRecord {
	const isExpired = row.expires_at !== null && row.expires_at <= now;
	const state = row.revoked_at !== null ? "revoked" : isExpired ? "expired" : backed ? "active" : "orphaned";
	return { ...toView<Omit<ManagementKeyRecord, "state">>(row), state };
}
