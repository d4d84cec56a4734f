import { Fault } from "../../base/fault.ts";
import type { KeyDigest } from "../../keys/digest.ts";
import type { ConsoleParts } from "../console-deps.ts";
import type { Allowed } from "../visit.ts";

type Who = Pick<Allowed, "accountId" | "viewer" | "scope">;

/** Whose keys are meant: null for all of the account's. */
export function makerIn({ scope, viewer }: Who): string | null {
	return scope === "own" ? viewer.userId : null;
}

/** What stands for the secret of a key that this member may use. Fault not_found. */
export async function usableDigest(
	{ statements }: Pick<ConsoleParts, "statements">,
	who: Who,
	id: string,
): Promise<KeyDigest> {
	const maker = makerIn(who);
	const [key] = await statements<{ digest: KeyDigest }>`
		select digest from api_key where id = ${id} and account_id = ${who.accountId}
			and (${maker}::text is null or made_by = ${maker}::text)`;
	if (key === undefined) throw new Fault("not_found", "There is no such key.", { param: "key" });
	return key.digest;
}
