import type { KeyDigest } from "../../keys/secret.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { PermittedMember } from "../console-session.ts";

type Who = Pick<PermittedMember, "accountId" | "viewer" | "scope">;

/**
 * Returns the person whose keys the member may see; null: all keys of the account. A key in a project belongs to every
 * member of that project; another key belongs to its creator.
 */
export function makerFilter({ scope, viewer }: Who): string | null {
	return scope === "own" ? viewer.userId : null;
}

export async function usableDigest({ statements }: Parts<"statements">, who: Who, id: string): Promise<KeyDigest> {
	const maker = makerFilter(who);
	const [key] = await statements<{ digest: KeyDigest }>`
		select k.digest from api_key k where k.id = ${id} and k.account_id = ${who.accountId}
			and (${maker}::text is null or key_is_of(k, ${maker}::text))`;
	if (key === undefined) throw new ConsoleError("not_found", "There is no such key.", { param: "key" });
	return key.digest;
}

export async function checkKeyAccess(parts: Parts<"statements">, who: Who, id: string): Promise<string> {
	await usableDigest(parts, who, id);
	return who.accountId;
}

/**
 * Checks that the member may create a key in this project, or outside projects if null. Members of projects must choose
 * one of their projects. Faults `not_found`, `forbidden`.
 */
export async function checkProjectAccess({ statements }: Parts<"statements">, who: Who, projectId: string | null) {
	const maker = makerFilter(who);
	if (maker === null) return;
	const his = await statements<{ id: string }>`
		select project_id as id from project_member where user_id = ${maker} and account_id = ${who.accountId}`;
	if (projectId === null && his.length > 0)
		throw new ConsoleError("forbidden", "You are a member of projects: choose one of them for the key.", {
			param: "projectId",
		});
	if (projectId !== null && !his.some(({ id }) => id === projectId))
		throw new ConsoleError("not_found", "There is no such project.", { param: "projectId" });
}
