import type { Statements } from "../../db/statements.ts";
import { getKey, type KeyRecord, shownKeyState } from "../../keys/key-admin.ts";
import { addUsd, type NanoUsd, nanoUsdOfColumn, ZERO_USD } from "../../money/nano-usd.ts";
import type { Parts } from "../console-deps.ts";

export type KeyView = ReturnType<typeof keyView>;

interface Held {
	readonly requests: number;
	readonly nanoUsd: NanoUsd;
}

/** Returns the credit that running requests of live instances hold, by key or by project. */
export async function readHeldCredit(kind: "key" | "project", statements: Statements, accountId: string) {
	const rows = await statements<{ id: string | null; requests: string; held: string }>`
		select case ${kind}::text when 'key' then r.key_id else r.project_id end as id, count(*) as requests,
			sum(r.reserved_nano_usd) as held
		from reservation r join instance_now i on i.id = r.instance_id and i.epoch = r.epoch
			and i.state = 'live' and i.lease_until > clock_timestamp()
		where r.account_id = ${accountId} group by 1`;
	return new Map(
		rows.map(({ id, requests, held }) => [id ?? "", { requests: Number(requests), nanoUsd: nanoUsdOfColumn(held) }]),
	);
}

export function keyView(key: KeyRecord, held: Held | undefined, nowMs: number) {
	const { accountId: _, etag: __, models, absentNanoUsd, ...shown } = key;
	return {
		...shown,
		models: [...models],
		state: shownKeyState(key, nowMs),
		/** Credit held by requests that were running at the last flush to Postgres, and by dead instances. */
		heldNanoUsd: addUsd(held?.nanoUsd ?? ZERO_USD, absentNanoUsd),
	};
}

export async function readKeyView({ statements, clock }: Parts<"statements" | "clock">, accountId: string, id: string) {
	const [key, held] = await Promise.all([
		getKey(statements, { id, accountId }),
		readHeldCredit("key", statements, accountId),
	]);
	return keyView(key, held.get(id), clock.wallMs());
}
