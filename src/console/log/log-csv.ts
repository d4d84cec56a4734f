import { csvResponse } from "../../base/csv.ts";
import type { Statements } from "../../db/statements.ts";
import { formatUsd } from "../../money/nano-usd.ts";
import { type LogFilter, type LogRow, logPage } from "./log-page.ts";

const PAGE_ROWS = 2_000;
/** Rows at most. */
const ROWS_MAX = 1_000_000;
/** New columns are appended: programs read the file by position. */
const HEAD =
	"time,request_id,model,key_id,key_name,endpoint,streamed,prompt_tokens,cached_tokens,completion_tokens,reasoning_tokens,cost_usd,duration_ms,first_token_ms,status,ending,basis,error_code,available_usd,held_usd,required_usd,affordable_max_tokens,repeats,batch_id".split(
		",",
	);

/** The log as a CSV file, newest first, generated while it is sent. */
export function logCsv(statements: Statements, accountId: string, filter: LogFilter): Promise<Response> {
	let after: string | null = null;
	let left = ROWS_MAX;
	let ended = false;
	return csvResponse("requests.csv", HEAD, async () => {
		if (ended) return undefined;
		const rows = await logPage(statements, accountId, filter, { asked: Math.min(PAGE_ROWS, left), after });
		left -= rows.length;
		after = rows.at(-1)?.cursor ?? null;
		ended = rows.length < PAGE_ROWS || left <= 0;
		return rows.map(({ row }) => lineOf(row));
	});
}

function lineOf(row: LogRow): (string | number | boolean | null)[] {
	const start = [new Date(row.atMs).toISOString(), row.id, row.model, row.keyId, row.keyName, row.endpoint];
	if (row.statusClass !== "refused") {
		return [
			...start,
			row.streamed,
			row.promptTokens,
			row.cachedTokens,
			row.completionTokens,
			row.reasoningTokens,
			formatUsd(row.costNanoUsd),
			row.durationMs,
			row.firstTokenMs,
			row.status,
			row.ending,
			row.basis,
			...NO_REFUSAL,
			row.batchId,
		];
	}
	const { shortage } = row;
	return [
		...start,
		...NO_USAGE,
		row.status,
		"refused",
		null,
		row.code,
		shortage === null ? null : formatUsd(shortage.availableNanoUsd),
		shortage === null ? null : formatUsd(shortage.heldNanoUsd),
		shortage === null ? null : formatUsd(shortage.requiredNanoUsd),
		shortage?.affordableMaxTokens ?? null,
		row.repeats,
		null,
	];
}

const NO_REFUSAL = [null, null, null, null, null, null];
/** Refused requests have no stream, usage, cost or duration. */
const NO_USAGE = [null, 0, 0, 0, 0, "0.00", null, null];
