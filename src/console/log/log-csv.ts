import { csvResponse } from "../../base/csv.ts";
import type { Statements } from "../../db/statements.ts";
import { formatUsd, type NanoUsd } from "../../money/nano-usd.ts";
import { type LogFilter, type LogRow, logPage } from "./log-page.ts";

const PAGE_ROWS = 2_000;
const ROWS_MAX = 1_000_000;
type Cell = string | number | boolean | null;
/** New columns are appended: programs read the file by position. */
const COLUMNS: Readonly<Record<string, (row: LogRow) => Cell>> = {
	time: ({ atMs }) => new Date(atMs).toISOString(),
	request_id: ({ id }) => id,
	model: ({ model }) => model,
	key_id: ({ keyId }) => keyId,
	key_name: ({ keyName }) => keyName,
	endpoint: ({ endpoint }) => endpoint,
	streamed: (row) => (isRefused(row) ? null : row.streamed),
	prompt_tokens: (row) => (isRefused(row) ? 0 : row.promptTokens),
	cached_tokens: (row) => (isRefused(row) ? 0 : row.cachedTokens),
	completion_tokens: (row) => (isRefused(row) ? 0 : row.completionTokens),
	reasoning_tokens: (row) => (isRefused(row) ? 0 : row.reasoningTokens),
	cost_usd: (row) => (isRefused(row) ? "0.00" : formatUsd(row.costNanoUsd)),
	duration_ms: (row) => (isRefused(row) ? null : row.durationMs),
	first_token_ms: (row) => (isRefused(row) ? null : row.firstTokenMs),
	status: ({ status }) => status,
	ending: (row) => (isRefused(row) ? "refused" : row.ending),
	basis: (row) => (isRefused(row) ? null : row.basis),
	error_code: (row) => (isRefused(row) ? row.code : null),
	available_usd: (row) => (isRefused(row) ? usd(row.shortage?.availableNanoUsd) : null),
	held_usd: (row) => (isRefused(row) ? usd(row.shortage?.heldNanoUsd) : null),
	required_usd: (row) => (isRefused(row) ? usd(row.shortage?.requiredNanoUsd) : null),
	affordable_max_tokens: (row) => (isRefused(row) ? (row.shortage?.affordableMaxTokens ?? null) : null),
	repeats: (row) => (isRefused(row) ? row.repeats : null),
	batch_id: (row) => (isRefused(row) ? null : row.batchId),
};

const isRefused = (row: LogRow) => row.statusClass === "refused";
const usd = (amount: NanoUsd | undefined) => (amount === undefined ? null : formatUsd(amount));

/** Streams the log as a CSV file, newest first, reading rows while it sends. */
export function logCsv(statements: Statements, accountId: string, filter: LogFilter): Promise<Response> {
	let after: string | null = null;
	let left = ROWS_MAX;
	let ended = false;
	return csvResponse("requests.csv", Object.keys(COLUMNS), async () => {
		if (ended) return undefined;
		const rows = await logPage(statements, accountId, filter, { asked: Math.min(PAGE_ROWS, left), after });
		left -= rows.length;
		after = rows.at(-1)?.cursor ?? null;
		ended = rows.length < PAGE_ROWS || left <= 0;
		return rows.map((row) => Object.values(COLUMNS).map((cell) => cell(row)));
	});
}
