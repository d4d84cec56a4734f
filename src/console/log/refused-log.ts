import { uuidFromId } from "../../base/id.ts";
import { BATCH_ROWS, deleteInBatches, type Statements, toView } from "../../db/statements.ts";
import type { CreditShortage } from "../../money/credit-shortage.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import type { LogCursor, RequestFilter } from "./request-log.ts";

/** A request that was refused before admission and cost nothing. */
export interface RefusedRow {
	readonly statusClass: "refused";
	readonly id: string;
	readonly atMs: number;
	/** Model name that the client sent; null if the request was refused before its model was read. */
	readonly model: string | null;
	readonly keyId: string;
	readonly keyName: string;
	readonly keyLastFour: string;
	readonly endpoint: string;
	readonly code: string;
	readonly status: number;
	/** Further refusals of the account with the same code in this minute; they have no rows. */
	readonly repeats: number;
	readonly repeatedAtMs: number | null;
	readonly shortage: (CreditShortage & { readonly limit: "account" | "project" | "key" }) | null;
	readonly message: string;
	readonly param: string | null;
	readonly cursor: string;
}

const MOMENT_MS_MAX = 253_402_300_799_999;
const UUID_LEAST = "00000000-0000-0000-0000-000000000000";

/**
 * Returns refusals, newest first. The union has one branch per index, and Postgres runs only the branch that matches
 * the filters, so that no page needs a scan.
 */
export async function refusedPage(
	statements: Statements,
	accountId: string,
	filter: Omit<RequestFilter, "status" | "batchId">,
	page: { asked: number; after: LogCursor | null },
): Promise<RefusedRow[]> {
	const { asked, after } = page;
	const { model, keyId, projectId } = filter;
	const from = microsOf(filter.fromMs ?? 0);
	const to = microsOf(Math.min(filter.toMs ?? MOMENT_MS_MAX, MOMENT_MS_MAX));
	// Without a cursor the page starts at the end of the range.
	const before = after !== null && Number(after.micros) < Number(to) ? after : { micros: to, uuid: UUID_LEAST };
	const rows = await statements<object>`
		with bounds as (
			select timestamptz 'epoch' + ${from}::bigint * interval '1 microsecond' as low,
				timestamptz 'epoch' + ${before.micros}::bigint * interval '1 microsecond' as high, ${before.uuid}::uuid as high_id
		)
		select e.request_id, e.refused_at as at, e.model, e.key_id, k.name as key_name, k.last_four as key_last_four, e.endpoint, e.code,
			e.status, e.message, e.param, e.repeats, e.repeated_at, e.available_nano_usd, e.held_nano_usd, e.required_nano_usd,
			e.affordable_tokens as affordable_max_tokens, (extract(epoch from e.refused_at) * 1000000)::bigint as micros
		from (
			(select r.* from refused_request r
				where ${model}::text is null and ${keyId}::text is null and coalesce(${projectId}::text, '') = ''
					and (${projectId}::text is distinct from '' or r.project_id is null) and r.account_id = ${accountId}
					and r.refused_at >= (select low from bounds)
					and (r.refused_at, r.request_id) < ((select high from bounds), (select high_id from bounds))
				order by r.refused_at desc, r.request_id desc limit ${asked})
			union all
			(select r.* from refused_request r
				where ${model}::text is null and ${keyId}::text is not null and r.key_id = ${keyId}::text and r.account_id = ${accountId}
					and (coalesce(${projectId}::text, '') = '' or r.project_id = ${projectId}::text)
					and (${projectId}::text is distinct from '' or r.project_id is null)
					and r.refused_at >= (select low from bounds)
					and (r.refused_at, r.request_id) < ((select high from bounds), (select high_id from bounds))
				order by r.refused_at desc, r.request_id desc limit ${asked})
			union all
			(select r.* from refused_request r
				where ${model}::text is null and ${keyId}::text is null and ${projectId}::text <> ''
					and r.project_id = ${projectId}::text and r.account_id = ${accountId} and r.refused_at >= (select low from bounds)
					and (r.refused_at, r.request_id) < ((select high from bounds), (select high_id from bounds))
				order by r.refused_at desc, r.request_id desc limit ${asked})
			union all
			(select r.* from refused_request r
				where ${model}::text is not null and r.account_id = ${accountId} and r.model = ${model}::text
					and (${keyId}::text is null or r.key_id = ${keyId}::text)
					and (coalesce(${projectId}::text, '') = '' or r.project_id = ${projectId}::text)
					and (${projectId}::text is distinct from '' or r.project_id is null)
					and r.refused_at >= (select low from bounds)
					and (r.refused_at, r.request_id) < ((select high from bounds), (select high_id from bounds))
				order by r.refused_at desc, r.request_id desc limit ${asked})
		) e join api_key k on k.id = e.key_id
		order by e.refused_at desc, e.request_id desc`;
	return rows.map(refusedRow);
}

const microsOf = (ms: number) => String(Math.floor(ms * 1000));

export async function findRefused(statements: Statements, accountId: string, id: string) {
	const uuid = id.length > 100 ? undefined : uuidFromId(id);
	if (uuid === undefined) return undefined;
	const [row] = await statements<object>`
		select e.request_id, e.refused_at as at, e.model, e.key_id, k.name as key_name, k.last_four as key_last_four, e.endpoint, e.code,
			e.status, e.message, e.param, e.repeats, e.repeated_at, e.available_nano_usd, e.held_nano_usd, e.required_nano_usd,
			e.affordable_tokens as affordable_max_tokens, (extract(epoch from e.refused_at) * 1000000)::bigint as micros
		from refused_request e join api_key k on k.id = e.key_id
		where e.request_id = ${uuid}::uuid and e.account_id = ${accountId}`;
	return row && refusedRow(row);
}

interface Columns extends Omit<RefusedRow, "statusClass" | "id" | "shortage" | "cursor"> {
	readonly requestId: string;
	readonly micros: string;
	readonly availableNanoUsd: NanoUsd | null;
	readonly heldNanoUsd: NanoUsd | null;
	readonly requiredNanoUsd: NanoUsd | null;
	readonly affordableMaxTokens: number | null;
}

function refusedRow(row: object): RefusedRow {
	const columns = toView<Columns>(row);
	const { requestId, micros, availableNanoUsd, heldNanoUsd, requiredNanoUsd, affordableMaxTokens, ...shown } = columns;
	const limit =
		shown.code === "key_cap_exceeded" ? "key" : shown.code === "project_cap_exceeded" ? "project" : "account";
	return {
		...shown,
		statusClass: "refused",
		id: `req_${requestId.replaceAll("-", "")}`,
		shortage:
			availableNanoUsd === null || heldNanoUsd === null || requiredNanoUsd === null
				? null
				: { limit, availableNanoUsd, heldNanoUsd, requiredNanoUsd, affordableMaxTokens },
		cursor: `${micros}.${requestId}`,
	};
}

export function deleteRefusals(statements: Statements, days: number): Promise<number> {
	return deleteInBatches(async () => {
		const [row] = await statements<{ rows: number }>`
			with old as (
				select request_id from refused_request where refused_at at time zone 'UTC' < now() at time zone 'UTC' - make_interval(days => ${days}::integer)
				order by refused_at at time zone 'UTC' limit ${BATCH_ROWS} for update skip locked
			), gone as (delete from refused_request r using old where r.request_id = old.request_id returning 1)
			select count(*)::integer as rows from gone`;
		return row?.rows ?? 0;
	});
}
