import { billLines, NO_QUANTITIES, type Quantities } from "../../admission/price.ts";
import { type CsvTurns, csvResponse } from "../../base/csv.ts";
import { mapInTurns } from "../../base/time-slice.ts";
import { findRateCard } from "../../billing/price-agreements.ts";
import type { Statements } from "../../db/statements.ts";
import { costNanoUsd, formatUsd, type NanoUsd, nanoUsdOfColumn } from "../../money/nano-usd.ts";
import { ConsoleError } from "../console-error.ts";
import type { StatusClass } from "../usage/usage-query.ts";
import { findRefused, type RefusedRow, refusedPage } from "./refused-log.ts";
import {
	findRequest,
	parseCursor,
	type RequestFilter,
	type RequestRow,
	requestPage,
	requestRow,
	type UsageRow,
} from "./request-log.ts";

/** A request in the log: settled, or refused before admission. `statusClass` tells which. */
export type LogRow = RequestRow | RefusedRow;
export type LogStatus = StatusClass | "refused";

export interface LogFilter extends Omit<RequestFilter, "status"> {
	readonly status: LogStatus | null;
}

export const ANY_REQUEST: LogFilter = {
	fromMs: null,
	toMs: null,
	model: null,
	keyId: null,
	projectId: null,
	status: null,
	batchId: null,
};

/** Merges settled and refused requests, newest first. Reads a full page of each by its own index, without a scan. */
export async function logPage(
	statements: Statements,
	accountId: string,
	{ status, ...filter }: LogFilter,
	page: { asked: number; after: string | null },
): Promise<LogRow[]> {
	const part = { asked: page.asked, after: page.after === null ? null : parseCursor(page.after) };
	const [settled, refused] = await Promise.all([
		status === "refused" ? [] : requestPage(statements, accountId, { ...filter, status }, part),
		filter.batchId === null && (status === null || status === "refused")
			? refusedPage(statements, accountId, filter, part)
			: [],
	]);
	return [...settled, ...refused].sort((a: LogRow, b: LogRow) => (a.cursor < b.cursor ? 1 : -1)).slice(0, page.asked);
}

/** Finds a request of this account by `req_…`, the response's id, or a bare UUID. Fault not_found. */
export async function logDetail(statements: Statements, accountId: string, id: string) {
	const settled = await findRequest(statements, accountId, id);
	if (settled !== undefined) return requestDetail(statements, settled);
	const refused = await findRefused(statements, accountId, id);
	if (refused !== undefined) return refused;
	throw new ConsoleError("not_found", "There is no such request, or it is still running.");
}

const ANSWER_PREFIX: Readonly<Record<string, string>> = { chat: "chatcmpl-", completions: "cmpl-" };

export async function requestDetail(statements: Statements, row: UsageRow) {
	const card = await findRateCard(statements, row.rate_card_id);
	const base = requestRow(row);
	const bill = card === undefined || base.costNanoUsd === 0 ? [] : billLines(card, quantitiesOf(row));
	const prefix = ANSWER_PREFIX[row.endpoint];
	return {
		...base,
		answerId: prefix === undefined ? null : prefix + row.request_id.replaceAll("-", ""),
		reservedNanoUsd: nanoUsdOfColumn(row.reserved_nano_usd),
		writtenOffNanoUsd: nanoUsdOfColumn(row.written_off_nano_usd),
		rateCard: row.rate_card_id,
		/** Alias of the replica. Customers must not see its address. */
		replica: row.replica,
		settledAtMs: row.settled_at.getTime(),
		/** Lines of the charge; empty if the rate card is unknown or nothing was charged. */
		lines: bill
			.filter(({ units, rate }) => units > 0 && rate > 0)
			.map(({ name, units, unit, rate }) => ({ name, units, unit, rate })),
		/** Differs from the cost only if a crash left no usage record and the upper bound was charged. */
		linesTotalNanoUsd: bill.length === 0 ? null : (costNanoUsd(bill) ?? null),
		timeline: timelineOf(row),
	};
}

function timelineOf(row: UsageRow) {
	const startMs = row.admitted_at.getTime();
	const step = (name: "admitted" | "first_token" | "ended" | "settled", afterMs: number) => {
		return { name, atMs: startMs + afterMs, afterMs };
	};
	const steps = [step("admitted", 0)];
	if (row.first_token_ms !== null) steps.push(step("first_token", row.first_token_ms));
	steps.push(step("ended", row.duration_ms));
	const settledAfterMs = row.settled_at.getTime() - startMs;
	// The maximum keeps the steps in order: the database's clock may be behind the gateway's.
	steps.push(step("settled", Math.max(settledAfterMs, row.duration_ms)));
	return steps;
}

function quantitiesOf(row: UsageRow): Quantities {
	const { units, endpoint } = row;
	return {
		...NO_QUANTITIES,
		promptTokens: row.prompt_tokens,
		cachedTokens: Math.min(row.cached_tokens, row.prompt_tokens),
		completionTokens: row.completion_tokens,
		requests: 1,
		images: endpoint === "image" ? units : 0,
		audioSeconds: endpoint === "transcription" ? units : 0,
		searches: endpoint === "rerank" ? units : 0,
	};
}

/** Rows of the CSV file that are read in one turn. */
const PAGE_ROWS = 500;
const ROWS_MAX = 1_000_000;
type Cell = string | number | boolean | null;
/** Columns of the CSV file. New columns go to the end, because programs read the file by position. */
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

/** Streams the log as CSV, newest first. Reads the next rows while earlier ones are sent. */
export function logCsv(
	{ statements, turns }: { statements: Statements; turns: CsvTurns },
	accountId: string,
	filter: LogFilter,
): Promise<Response> {
	let after: string | null = null;
	let left = ROWS_MAX;
	let ended = false;
	const next = async () => {
		if (ended) return undefined;
		const rows = await logPage(statements, accountId, filter, { asked: Math.min(PAGE_ROWS, left), after });
		left -= rows.length;
		after = rows.at(-1)?.cursor ?? null;
		ended = rows.length < PAGE_ROWS || left <= 0;
		return mapInTurns(rows, (row) => Object.values(COLUMNS).map((cell) => cell(row)));
	};
	return csvResponse("requests.csv", Object.keys(COLUMNS), next, turns);
}
