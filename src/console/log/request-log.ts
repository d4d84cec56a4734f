import { uuidFromId } from "../../base/id.ts";
import type { Statements } from "../../db/statements.ts";
import { type CountColumns, readCounts } from "../../ledger/usage-fields.ts";
import { nanoUsdOfColumn } from "../../money/nano-usd.ts";
import { ConsoleError, cursorRefused } from "../console-error.ts";
import { HOUR_MS, type StatusClass } from "../usage/usage-query.ts";

export type RequestRow = ReturnType<typeof requestRow>;

export interface RequestFilter {
	readonly fromMs: number | null;
	readonly toMs: number | null;
	readonly model: string | null;
	readonly keyId: string | null;
	/** Project of the key at admission; "": no project. */
	readonly projectId: string | null;
	readonly status: StatusClass | null;
	readonly batchId: string | null;
}

export interface UsageRow extends CountColumns {
	request_id: string;
	account_id: string;
	key_id: string;
	key_name: string;
	last_four: string;
	model: string;
	rate_card_id: string;
	endpoint: string;
	streamed: boolean;
	reserved_nano_usd: string;
	charged_nano_usd: string;
	written_off_nano_usd: string;
	basis: "exact" | "estimated" | "recovered";
	ending: string;
	class: StatusClass;
	status: number;
	replica: string | null;
	batch_id: string | null;
	admitted_at: Date;
	admitted_micros: string;
	first_token_ms: number | null;
	duration_ms: number;
	settled_at: Date;
}

/**
 * Minimum age of an hour whose sums are complete. Sums go by admission time, and a request is added after its
 * settlement. 35 minutes exceed the default maximum duration of a request; a longer `limits` setting is not covered.
 */
const SUMS_LAG_MS = 35 * 60_000;
const MOMENT_MS_MAX = 253_402_300_799_999;

interface Search {
	readonly statements: Statements;
	readonly accountId: string;
	readonly filter: RequestFilter;
	readonly asked: number;
	readonly after: LogCursor | null;
}

/** A range of time from `a` (inclusive) to `b` (exclusive), in milliseconds. */
interface Span {
	readonly a: number;
	readonly b: number;
}

/** Returns requests, newest first. For a rare model or status, the hourly sums tell which hours need reading. */
export async function requestPage(
	statements: Statements,
	accountId: string,
	filter: RequestFilter,
	page: { asked: number; after: LogCursor | null },
): Promise<RequestRow[]> {
	const search = { statements, accountId, filter, ...page };
	const rows = await (filter.batchId === null ? rowsInTime(search) : rowsOfBatch(search));
	return rows.map(requestRow);
}

async function rowsInTime(search: Search): Promise<UsageRow[]> {
	const { statements, accountId, filter, asked, after } = search;
	const { micros = null, uuid = null } = after ?? {};
	const toMs = Math.min(filter.toMs ?? MOMENT_MS_MAX, MOMENT_MS_MAX);
	const whole = { a: filter.fromMs ?? 0, b: micros === null ? toMs : Math.min(toMs, Number(micros) / 1000 + 1) };
	const { projectId } = filter;
	const narrow =
		filter.model !== null ||
		filter.status !== null ||
		projectId === "" ||
		(projectId !== null && filter.keyId !== null);
	const spans = narrow ? await spansWithRows(search, whole) : [whole];
	return statements<UsageRow>`
		select e.*, usage_class(e.ending) as class, (extract(epoch from e.admitted_at) * 1000000)::bigint as admitted_micros,
			k.name as key_name, k.last_four
		from (
			select u.* from json_to_recordset(${JSON.stringify(spans)}::text::json) as s(a double precision, b double precision)
				cross join lateral usage_page(${accountId}, to_timestamp(s.a / 1000), to_timestamp(s.b / 1000),
					timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond', ${uuid}::uuid,
					${filter.model}::text, ${filter.keyId}::text, ${projectId}::text, ${filter.status}::text, ${asked}::integer) u
			order by u.admitted_at desc, u.request_id desc limit ${asked}
		) e
			-- Lateral, one lookup per row: the planner cannot know how few rows a page has, and a join would scan all keys.
			cross join lateral (select a.name, a.last_four from api_key a where a.id = e.key_id limit 1) k
		order by e.admitted_at desc, e.request_id desc`;
}

/** Reads by the index on `batch_id`: the lines of a batch may be spread over a day of other requests. */
async function rowsOfBatch({ statements, accountId, filter, asked, after }: Search): Promise<UsageRow[]> {
	const { micros = null, uuid = null } = after ?? {};
	const toMs = Math.min(filter.toMs ?? MOMENT_MS_MAX, MOMENT_MS_MAX);
	return statements<UsageRow>`
		select e.*, usage_class(e.ending) as class, (extract(epoch from e.admitted_at) * 1000000)::bigint as admitted_micros,
			k.name as key_name, k.last_four
		from usage_event e join api_key k on k.id = e.key_id
		where e.batch_id = ${filter.batchId} and e.account_id = ${accountId}
			and e.admitted_at >= to_timestamp(${filter.fromMs ?? 0}::double precision / 1000)
			and e.admitted_at < to_timestamp(${toMs}::double precision / 1000)
			and (${micros}::bigint is null or (e.admitted_at, e.request_id)
				< (timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond', ${uuid}::uuid))
			and (${filter.model}::text is null or e.model = ${filter.model}::text)
			and (${filter.keyId}::text is null or e.key_id = ${filter.keyId}::text)
			and (coalesce(${filter.projectId}::text, '') = '' or e.project_id = ${filter.projectId}::text)
			and (${filter.projectId}::text is distinct from '' or e.project_id is null)
			and (${filter.status}::text is null or usage_class(e.ending) = ${filter.status}::text)
		order by e.admitted_at desc, e.request_id desc limit ${asked}`;
}

/**
 * Returns the newest whole hours that contain at least `asked` matching requests according to the hourly sums; all
 * hours if there are fewer. Adds the partial hours at both ends and the last half hour, which the sums may lack.
 */
async function spansWithRows(search: Search, whole: Span): Promise<Span[]> {
	const summedMs = hourOf(Math.min(whole.b, Date.now() - SUMS_LAG_MS));
	const firstMs = hourOf(whole.a + HOUR_MS - 1);
	const rows = await hoursWithRows(search, { a: firstMs, b: summedMs });
	const spans: Span[] = [{ a: Math.max(summedMs, whole.a), b: whole.b }];
	let found = 0;
	for (const { hour, requests } of rows) {
		if (found >= search.asked) break;
		spans.push({ a: hour.getTime(), b: hour.getTime() + HOUR_MS });
		found += Number(requests);
	}
	if (found < search.asked) spans.push({ a: whole.a, b: Math.min(firstMs, summedMs) });
	return spans.filter(({ a, b }) => a < b);
}

interface Hour {
	readonly hour: Date;
	readonly requests: string;
}

async function hoursWithRows(search: Search, summed: Span): Promise<Hour[]> {
	const { statements, accountId, filter, asked } = search;
	const { projectId, keyId, model, status } = filter;
	if (projectId === "") return hoursInNone(search, summed);
	const [from, to] = [summed.a, summed.b];
	if (projectId === null)
		return statements<Hour>`
			select hour, sum(requests) as requests
			from usage_hours(${accountId}, ${keyId}::text, ${model}::text, ${status}::text,
				to_timestamp(${from}::double precision / 1000), to_timestamp(${to}::double precision / 1000), ${asked}::integer)
			group by 1 order by 1 desc limit ${asked}::integer`;
	return statements<Hour>`
		select hour, sum(requests) as requests
		from usage_project_hours(${accountId}, ${projectId}::text, ${keyId}::text, ${model}::text, ${status}::text,
			to_timestamp(${from}::double precision / 1000), to_timestamp(${to}::double precision / 1000), ${asked}::integer)
		group by 1 order by 1 desc limit ${asked}::integer`;
}

/** Longest range in days of a search for requests without a project, for which there is no index. */
const NONE_DAYS_MAX = 400;
const DAY_MS = 24 * HOUR_MS;

/**
 * Returns the newest hours with usage outside projects, until they contain `asked` requests. Searches two days, then
 * four, and so on. Fault `invalid_request` if the range exceeds NONE_DAYS_MAX.
 */
async function hoursInNone({ statements, accountId, filter, asked }: Search, { a, b }: Span): Promise<Hour[]> {
	const { keyId, model, status } = filter;
	const [oldest] = await statements<{ hour: Date | null }>`
		select min(hour) as hour from usage_hour where account_id = ${accountId}`;
	const fromMs = Math.max(a, oldest?.hour?.getTime() ?? b);
	if (b - fromMs > NONE_DAYS_MAX * DAY_MS)
		throw new ConsoleError("invalid_request", "Usage without a project is limited to 400 days at a time.", {
			param: "from",
		});
	const hours: Hour[] = [];
	let found = 0;
	let endMs = b;
	for (let days = 2; endMs > fromMs && found < asked; days *= 2) {
		const beginMs = Math.max(fromMs, endMs - days * DAY_MS);
		const rows = await statements<Hour>`
			select hour, sum(requests) as requests
			from usage_split(${accountId}, to_timestamp(${beginMs}::double precision / 1000),
				to_timestamp(${endMs}::double precision / 1000), true, '') h
			where (${keyId}::text is null or h.key_id = ${keyId}::text) and (${model}::text is null or h.model = ${model}::text)
				and (${status}::text is null or h.class = ${status}::text)
			group by 1 having sum(requests) > 0 order by 1 desc limit ${asked}::integer`;
		hours.push(...rows);
		found += rows.reduce((sum, { requests }) => sum + Number(requests), 0);
		endMs = beginMs;
	}
	return hours;
}

const hourOf = (ms: number) => Math.floor(ms / HOUR_MS) * HOUR_MS;

export async function findRequest(statements: Statements, accountId: string, id: string) {
	const uuid = id.length > 100 ? undefined : uuidFromId(id);
	if (uuid === undefined) return undefined;
	const [row] = await statements<UsageRow>`
		select e.*, usage_class(e.ending) as class, (extract(epoch from e.admitted_at) * 1000000)::bigint as admitted_micros,
			k.name as key_name, k.last_four
		from usage_event e join api_key k on k.id = e.key_id
		where e.request_id = ${uuid}::uuid and e.account_id = ${accountId}`;
	return row;
}

export function requestRow(row: UsageRow) {
	return {
		id: `req_${row.request_id.replaceAll("-", "")}`,
		atMs: row.admitted_at.getTime(),
		model: row.model,
		keyId: row.key_id,
		keyName: row.key_name,
		keyLastFour: row.last_four,
		endpoint: row.endpoint,
		streamed: row.streamed,
		...readCounts(row),
		costNanoUsd: nanoUsdOfColumn(row.charged_nano_usd),
		durationMs: row.duration_ms,
		firstTokenMs: row.first_token_ms,
		ending: row.ending,
		status: row.status,
		statusClass: row.class,
		basis: row.basis,
		batchId: row.batch_id,
		cursor: `${row.admitted_micros}.${row.request_id}`,
	};
}

/** Position in the request log, newest first: a request's time and, for equal times, its id. */
export interface LogCursor {
	/** Microseconds since 1970, decimal. */
	readonly micros: string;
	readonly uuid: string;
}

/** Parses `micros.uuid`. Cursors sort as texts: microseconds have 16 digits until 2286. Fault `invalid_request`. */
export function parseCursor(text: string): LogCursor {
	const [, micros, uuid] = /^(\d{1,18})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(text) ?? [];
	if (micros === undefined || uuid === undefined) throw cursorRefused();
	return { micros, uuid };
}
