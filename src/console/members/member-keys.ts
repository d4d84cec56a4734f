import type { Statements } from "../../db/statements.ts";
import { revokeKey } from "../../keys/key-admin.ts";
import type { Role } from "./roles.ts";

/** A key whose secret a member was shown. */
export interface MemberKey {
	readonly id: string;
	readonly name: string;
	readonly lastFour: string;
}

/** The account's keys that still work and that are this person's, or that this one made or rotated by the audit log. Newest first; with a project its alone. */
export async function keysMadeBy(
	statements: Statements,
	accountId: string,
	userId: string,
	projectId: string | null = null,
): Promise<MemberKey[]> {
	const rows = await statements<{ id: string; name: string; last_four: string }>`
		select k.id, k.name, k.last_four from api_key k
		where k.account_id = ${accountId} and k.state = 'active' and (k.expires_at is null or k.expires_at > clock_timestamp())
			and (${projectId}::text is null or k.project_id = ${projectId}::text)
			and (k.made_by = ${userId} or exists (select 1 from audit_event e where e.actor = ${userId} and e.account_id = ${accountId}
				and ((e.action = 'key.create' and e.subject = k.id) or (e.action = 'key.rotate' and e.detail->>'replacement' = k.id))))
		order by k.id desc`;
	return rows.map(({ id, name, last_four }) => ({ id, name, lastFour: last_four }));
}

/**
 * Gives the ids, and a control entry behind which all of his keys are known to have ended: also those that an earlier call
 * revoked, whose caller may have waited in vain.
 */
export async function revokeKeysMadeBy(
	statements: Statements,
	accountId: string,
	userId: string,
	projectId: string | null = null,
): Promise<{ ids: string[]; seq: number }> {
	const keys = await keysMadeBy(statements, accountId, userId, projectId);
	for (const { id } of keys) await revokeKey(statements, { id, accountId });
	const [newest] = await statements<{ seq: string }>`select coalesce(max(seq), 0) as seq from control_log`;
	return { ids: keys.map(({ id }) => id), seq: Number(newest?.seq) };
}

/**
 * What who has just made a key is by now, undefined for no member; asked once the audit log knows of the key. So either
 * who takes the right away finds the key, or this finds it taken away.
 */
export async function roleOf(statements: Statements, accountId: string, userId: string): Promise<Role | undefined> {
	const [row] = await statements<{
		role: Role;
	}>`select role from member where account_id = ${accountId} and user_id = ${userId}`;
	return row?.role;
}
