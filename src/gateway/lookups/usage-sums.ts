import type { Clock } from "../../base/clock.ts";
import { csvLine } from "../../base/csv.ts";
import { createFairQueue } from "../../base/fair-pool.ts";
import { Fault } from "../../base/fault.ts";
import type { Statements } from "../../db/statements.ts";
import type { CountColumns } from "../../ledger/usage-fields.ts";
import { formatDecimal } from "../../money/decimal.ts";
import { jsonHeaders } from "../headers.ts";
import type { UnmeteredCall } from "../unmetered-answer.ts";
import { queryDatabase } from "./ask-database.ts";

const GROUPS = ["day", "model", "project", "key"] as const;
type Group = (typeof GROUPS)[number];

interface Query {
	readonly from: string;
	readonly to: string;
	readonly groups: ReadonlySet<Group>;
	readonly model: string | null;
	readonly key: string | null;
	/** Id of a project; empty: requests without a project; null: all requests. */
	readonly project: string | null;
	readonly limit: number;
	/** Key of the row after which the page starts. */
	readonly after: readonly [day: string, model: string, project: string, key: string] | null;
}

interface Row extends Omit<Record<keyof CountColumns, string>, "units"> {
	day: string;
	model: string;
	project_id: string;
	project_name: string | null;
	key_id: string;
	key_name: string | null;
	requests: string;
	charged: string;
	as_of: Date | null;
}

const NAMES = ["from", "to", "group_by", "model", "key", "project", "limit", "after"] as const;
const DAY = /^\d{4}-\d\d-\d\d$/;
const DAY_MS = 24 * 3_600_000;
const DAYS_DEFAULT = 30;
const DAYS_MAX = 400;
const ROWS_DEFAULT = 1_000;
const ROWS_MAX = 10_000;
const TEXT_CHARS_MAX = 1_000;
/** Concurrent queries per process. Their cost grows with the date range, unlike that of the other look-ups. */
const SUMS_MAX = 2;
const SUMS_WAITING_MAX = 64;
const SUMS_WAIT_MS_MAX = 30_000;

/**
 * GET /v1/usage: grouped sums of the account's usage. The cost depends only on the requested days. Faults
 * invalid_request, overloaded, service_unavailable.
 */
export function createUsageSums(deps: { statements: Statements; clock: Clock }) {
	const { statements, clock } = deps;
	const queries = createFairQueue(
		{ clock },
		{ places: SUMS_MAX, waitingMax: SUMS_WAITING_MAX, waitMsMax: SUMS_WAIT_MS_MAX },
	);

	return async ({ connection, key, requestId }: UnmeteredCall): Promise<Response> => {
		const { request } = connection;
		const { accountId } = key;
		const url = new URL(request.url);
		const query = queryOf(url.searchParams, clock.wallMs());
		const rows = await queries.run(accountId, () => queryDatabase(() => read(statements, accountId, query)));
		const shown = rows.slice(0, query.limit);
		const next = rows.length > query.limit ? cursorOf(shown.at(-1)) : null;
		const headers = jsonHeaders(requestId);
		if (next !== null) headers.link = linkTo(url, next);
		if (wantsCsv(request)) {
			headers["content-type"] = "text/csv; charset=utf-8";
			return new Response(csvOf(shown, query), { headers });
		}
		const { from, to } = query;
		// The time of the sums is a column of each row, so it is null without rows.
		const asOf = rows[0]?.as_of?.toISOString() ?? null;
		const data = shown.map((row) => sumOf(row, query));
		const answer = { object: "list", data, from, to, as_of: asOf, has_more: next !== null, next };
		return new Response(JSON.stringify(answer), { headers });
	};
}

async function read(statements: Statements, accountId: string, query: Query): Promise<Row[]> {
	const { from, to, groups, model, key, project, limit } = query;
	const isTold = groups.has("project") || project !== null;
	const [day, afterModel, afterProject, afterKey] = query.after ?? [null, null, null, null];
	// If rows are grouped by day, the query starts at the day of the page's first row, and the index skips earlier days.
	const since = groups.has("day") && day !== null && day > from ? day : from;
	return statements<Row>`
		with sums as (
			select case when ${groups.has("day")}::boolean then to_char(date_trunc('day', h.hour, 'UTC') at time zone 'UTC', 'YYYY-MM-DD') else '' end as day,
				case when ${groups.has("model")}::boolean then h.model else '' end as model,
				case when ${groups.has("project")}::boolean then h.project_id else '' end as project_id,
				case when ${groups.has("key")}::boolean then h.key_id else '' end as key_id,
				sum(h.requests) as requests, sum(h.prompt_tokens) as prompt_tokens, sum(h.cached_tokens) as cached_tokens,
				sum(h.completion_tokens) as completion_tokens, sum(h.reasoning_tokens) as reasoning_tokens, sum(h.charged_nano_usd) as charged
			from usage_split(${accountId}, ${since}::timestamp at time zone 'UTC', (${to}::timestamp + interval '1 day') at time zone 'UTC',
				${isTold}::boolean, ${project}::text) h
			where (${model}::text is null or h.model = ${model}::text) and (${key}::text is null or h.key_id = ${key}::text)
			group by 1, 2, 3, 4 having sum(h.requests) > 0
		)
		-- Rows younger than a minute may wait for the next fold while another transaction runs.
		select s.*, k.name as key_name, p.name as project_name,
			(select c.folded_at - interval '1 minute' from usage_cursor c where c.id = 1) as as_of
		from sums s left join api_key k on k.id = s.key_id and k.account_id = ${accountId}
			left join project p on p.id = s.project_id and p.account_id = ${accountId}
		where ${day}::text is null
			or (s.day, s.model, s.project_id, s.key_id) > (${day}::text, ${afterModel}::text, ${afterProject}::text, ${afterKey}::text)
		order by s.day, s.model, s.project_id, s.key_id limit ${limit + 1}`;
}

function queryOf(given: URLSearchParams, nowMs: number): Query {
	const values: Partial<Record<(typeof NAMES)[number], string>> = {};
	for (const [param, value] of given) {
		// Accepts `group_by[]` too, because clients of other services write lists this way.
		const name = NAMES.find((known) => known === param || (known === "group_by" && param === "group_by[]"));
		if (name === undefined) throw wrong(param, "Unknown query parameter.");
		if (value.length > TEXT_CHARS_MAX) throw wrong(param, "The value of this query parameter is too long.");
		if (values[name] !== undefined && name !== "group_by")
			throw wrong(param, "This query parameter is repeated. Send it once.");
		values[name] = values[name] === undefined ? value : `${values[name]},${value}`;
	}
	const to = dayOf(values.to, "to") ?? isoDay(nowMs);
	const from = dayOf(values.from, "from") ?? isoDay(Date.parse(to) - (DAYS_DEFAULT - 1) * DAY_MS);
	const days = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;
	if (days < 1) throw wrong("to", "`to` must not be before `from`.");
	if (days > DAYS_MAX) throw wrong("from", `The range from \`from\` to \`to\` must not exceed ${DAYS_MAX} days.`);
	const limit = values.limit === undefined ? ROWS_DEFAULT : Number(values.limit);
	if (!/^\d{1,6}$/.test(values.limit ?? "1") || limit < 1 || limit > ROWS_MAX)
		throw wrong("limit", `\`limit\` must be an integer from 1 to ${ROWS_MAX}.`);
	return {
		from,
		to,
		groups: groupsOf(values.group_by),
		model: values.model ?? null,
		key: values.key ?? null,
		project: values.project === "none" ? "" : (values.project ?? null),
		limit,
		after: values.after === undefined ? null : placeOf(values.after),
	};
}

function groupsOf(text = "day,model"): ReadonlySet<Group> {
	const names = text.split(",").filter((name) => name !== "");
	const groups = GROUPS.filter((group) => names.includes(group));
	if (groups.length !== new Set(names).size)
		throw wrong("group_by", `\`group_by\` must be a comma-separated list of ${GROUPS.join(", ")}.`);
	return new Set(groups);
}

function dayOf(text: string | undefined, param: string): string | undefined {
	if (text === undefined) return undefined;
	const atMs = DAY.test(text) && text >= "2000" ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
	// Refuses days that do not exist, such as February 30: `Date` would move them into the next month.
	if (Number.isNaN(atMs) || isoDay(atMs) !== text) throw wrong(param, "The value must be a date such as 2027-01-31.");
	return text;
}

const isoDay = (atMs: number): string => new Date(atMs).toISOString().slice(0, 10);

function cursorOf(row: Row | undefined): string | null {
	if (row === undefined) return null;
	return Buffer.from(JSON.stringify([row.day, row.model, row.project_id, row.key_id])).toString("base64url");
}

function placeOf(cursor: string): readonly [string, string, string, string] {
	try {
		const place: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
		if (Array.isArray(place) && place.length === 4 && place.every((part) => typeof part === "string")) {
			const [day, model, project, key] = place as [string, string, string, string];
			if (day === "" || dayOf(day, "after") !== undefined) return [day, model, project, key];
		}
	} catch {
		// Not JSON: refused below.
	}
	throw wrong("after", "`after` must be the `next` value of the previous page.");
}

function wrong(param: string, message: string): Fault {
	return new Fault("invalid_request", message, { param: /^[\w[\]]{1,64}$/.test(param) ? param : null });
}

function linkTo(url: URL, after: string): string {
	const next = new URLSearchParams(url.searchParams);
	next.set("after", after);
	return `<${url.pathname}?${next}>; rel="next"`;
}

function wantsCsv(request: Request): boolean {
	const accept = request.headers.get("accept") ?? "";
	return accept.split(",").some((type) => type.trim().split(";")[0]?.toLowerCase() === "text/csv");
}

const groupFields = (row: Row, { groups }: Query): Record<string, string | null> => ({
	...(groups.has("day") ? { day: row.day } : {}),
	...(groups.has("model") ? { model: row.model } : {}),
	...(groups.has("project") ? { project_id: row.project_id || null, project_name: row.project_name } : {}),
	...(groups.has("key") ? { key_id: row.key_id, key_name: row.key_name } : {}),
});

const countFields = (row: Row) => ({
	requests: Number(row.requests),
	prompt_tokens: Number(row.prompt_tokens),
	cached_tokens: Number(row.cached_tokens),
	completion_tokens: Number(row.completion_tokens),
	reasoning_tokens: Number(row.reasoning_tokens),
	total_tokens: Number(row.prompt_tokens) + Number(row.completion_tokens),
	cost_usd: formatDecimal(BigInt(row.charged), 9, 2),
});

const sumOf = (row: Row, query: Query) => ({ object: "usage.sum", ...groupFields(row, query), ...countFields(row) });

function csvOf(rows: readonly Row[], query: Query): string {
	const nothing = { requests: 0, charged: 0 } as unknown as Row;
	const lines = rows.map((row) => Object.values({ ...groupFields(row, query), ...countFields(row) }));
	return [Object.keys({ ...groupFields(nothing, query), ...countFields(nothing) }), ...lines].map(csvLine).join("");
}
