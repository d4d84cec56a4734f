import type { Statements } from "../db/statements.ts";
import type { KeyDigest } from "./digest.ts";
import type { LoadedKey } from "./keyring.ts";

/**
 * Reads a key for the keyring. One statement, so one snapshot: a change and its control entry commit together, so the
 * row reflects exactly the entries up to `seq`.
 */
export function keyLoader(statements: Statements): (digest: KeyDigest) => Promise<LoadedKey> {
	return async (digest) => {
		const [row] = await statements<Omit<LoadedKey, "seq"> & { seq: string }>`
			select c.seq, case when k.id is not null then key_fields(k) end as key, case when a.id is not null then account_fields(a) end as account,
				case when p.id is not null then project_fields(p) end as project
			from (select coalesce(max(seq), 0) as seq from control_log) c
				left join api_key k on k.digest = ${digest}
				left join account a on a.id = k.account_id
				left join project p on p.id = k.project_id`;
		if (row === undefined) throw new Error("the control log gives no position");
		return { ...row, seq: Number(row.seq) };
	};
}
