import { type AppendedEntry, type AppendedRow, toEntry } from "../../cluster/control-log.ts";
import { type Statements, toView } from "../../db/statements.ts";
import { revokeKey } from "../../keys/key-admin.ts";
import type { AuditNote } from "../../ops/audit.ts";
import { ConsoleError } from "../console-error.ts";
import type { Role } from "./roles.ts";

/** Maximum rounds in which a revoked key is active again, because a database failover lost the revocation. */
const TAKEOVERS_MAX = 2;
/** Maximum rounds: each round revokes the keys that the member created during the previous round. */
const REVOKING_ROUNDS_MAX = 50;

export interface MemberKey {
	readonly id: string;
	readonly name: string;
	readonly lastFour: string;
}

/**
 * Returns active keys that belong to this person, and those that the person created or rotated according to the audit
 * log, newest first. With `projectId` only keys of that project.
 */
export async function keysMadeBy(
	statements: Statements,
	accountId: string,
	userId: string,
	projectId: string | null = null,
): Promise<MemberKey[]> {
	const rows = await statements<object>`
		select k.id, k.name, k.last_four from api_key k
		where k.account_id = ${accountId} and k.state = 'active' and (k.expires_at is null or k.expires_at > clock_timestamp())
			and (${projectId}::text is null or k.project_id = ${projectId}::text)
			and (k.made_by = ${userId} or exists (select 1 from audit_event e where e.actor = ${userId} and e.account_id = ${accountId}
				and ((e.action = 'key.create' and e.subject = k.id) or (e.action = 'key.rotate' and e.detail->>'replacement' = k.id))))
		order by k.id desc`;
	return rows.map(toView<MemberKey>);
}

/**
 * Revokes the person's keys. Returns their ids and the newest control entry, for which the caller waits: it covers the
 * revocations of this and of an interrupted earlier call. `act` makes the audit entry of each revocation. The entry is
 * null if the control log is empty. Fault `service_unavailable` if failovers or new keys do not stop.
 */
export async function revokeKeysMadeBy(
	statements: Statements,
	accountId: string,
	userId: string,
	projectId: string | null = null,
	act?: () => AuditNote,
): Promise<{ ids: string[]; entry: AppendedEntry | null }> {
	const ids = new Set<string>();
	let takeovers = 0;
	let keys = await keysMadeBy(statements, accountId, userId, projectId);
	for (let round = 0; round < REVOKING_ROUNDS_MAX && takeovers <= TAKEOVERS_MAX; round++) {
		for (const { id } of keys) {
			await revokeKey(statements, { id, accountId }, act?.());
			ids.add(id);
		}
		const [newest] = await statements<AppendedRow>`
			select seq, control_at(at) as at_micros from control_log order by seq desc limit 1`;
		// Reads the keys again: after a failover the new database server may lack revocations of this call.
		keys = await keysMadeBy(statements, accountId, userId, projectId);
		if (keys.length === 0) return { ids: [...ids], entry: newest === undefined ? null : toEntry(newest) };
		if (keys.some(({ id }) => ids.has(id))) takeovers += 1;
	}
	throw new ConsoleError("service_unavailable", "Not all keys could be revoked. Please try again.");
}

/**
 * Returns the role of a member who has just created a key; undefined if the person is no longer a member. Call it once
 * the audit log contains the key: then a concurrent removal finds the key, or this call finds the removal.
 */
export async function readRole(statements: Statements, accountId: string, userId: string): Promise<Role | undefined> {
	const [row] = await statements<{ role: Role }>`
		select role from member where account_id = ${accountId} and user_id = ${userId}`;
	return row?.role;
}

export async function belongsToMember(statements: Statements, id: string, userId: string): Promise<boolean> {
	return (await statements`select 1 from api_key k where k.id = ${id} and key_is_of(k, ${userId})`).length > 0;
}
