import { type Clock, sleep } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";
import { uuidOfId } from "../../base/id.ts";
import type { Statements } from "../../db/statements.ts";
import type { CountColumns } from "../../ledger/usage-fields.ts";
import { formatUsd, nanoUsdOfColumn } from "../../money/nano-usd.ts";
import { askDatabase } from "./ask-database.ts";

interface SettledRow extends RunningRow, CountColumns {
	endpoint: string;
	streamed: boolean;
	basis: "exact" | "estimated" | "recovered";
	ending: string;
	status: number;
	charged: string;
	card: string;
	batch: string | null;
}

interface RunningRow {
	model: string;
	created: string;
	reserved: string;
}

/** A settlement reaches Postgres after a flush interval, a running request after two. */
const WAIT_MS = 400;
const POLL_MS = 50;

/** GET /v1/usage/{id}, by `x-request-id` or the answer's id, within the account. Fault not_found. */
export async function usageAnswer(deps: { statements: Statements; clock: Clock }, accountId: string, id: string) {
	const requestId = uuidOfId(id.slice(0, ID_CHARS_MAX));
	if (requestId === undefined) throw unknown();
	const publicId = `req_${requestId.replaceAll("-", "")}`;
	for (let waitedMs = 0; ; waitedMs += POLL_MS) {
		const settled = await askDatabase(() => readSettled(deps.statements, accountId, requestId));
		const row = settled ?? (await askDatabase(() => readRunning(deps.statements, accountId, requestId)));
		if (row) return answerOf(publicId, row, settled);
		// A flush may fall between the two reads, so even an old request is read twice.
		if (waitedMs >= (isRecent(requestId, deps.clock) ? WAIT_MS : POLL_MS)) throw unknown();
		await sleep(deps.clock, POLL_MS);
	}
}

const ID_CHARS_MAX = 128;
/** With tolerance for a clock that was set, or differs from the instance's that made the id. */
const RECENT_MS = 60_000;

/** UUIDv7 begins with the milliseconds of its creation. */
function isRecent(requestId: string, clock: Clock): boolean {
	const madeMs = Number.parseInt(requestId.replaceAll("-", "").slice(0, 12), 16);
	return Math.abs(clock.wallMs() - madeMs) < RECENT_MS;
}

async function readSettled(
	statements: Statements,
	accountId: string,
	requestId: string,
): Promise<SettledRow | undefined> {
	const [row] = await statements<SettledRow>`
		select e.model, floor(extract(epoch from e.admitted_at))::bigint as created, e.endpoint, e.streamed, e.basis, e.ending,
			e.status, e.prompt_tokens, e.cached_tokens, e.completion_tokens, e.reasoning_tokens, e.units, e.charged_nano_usd as charged, e.reserved_nano_usd as reserved,
			e.rate_card_id as card, e.batch_id as batch
		from usage_event e where e.request_id = ${requestId}::uuid and e.account_id = ${accountId}`;
	return row;
}

async function readRunning(
	statements: Statements,
	accountId: string,
	requestId: string,
): Promise<RunningRow | undefined> {
	const [row] = await statements<RunningRow>`
		select r.model, floor(extract(epoch from r.admitted_at))::bigint as created, r.reserved_nano_usd as reserved
		from reservation r where r.request_id = ${requestId}::uuid and r.account_id = ${accountId}`;
	return row;
}

/** Amounts are decimal strings of US dollars. What the end of a request decides is null while it runs. */
function answerOf(id: string, row: RunningRow, settled: SettledRow | undefined) {
	return {
		id,
		object: "usage",
		created: Number(row.created),
		model: row.model,
		status: settled ? "settled" : "running",
		endpoint: settled?.endpoint ?? null,
		streamed: settled?.streamed ?? null,
		basis: settled?.basis ?? null,
		ending: settled?.ending ?? null,
		http_status: settled?.status ?? null,
		usage: settled ? usageOf(settled) : null,
		cost_usd: settled ? formatUsd(nanoUsdOfColumn(settled.charged)) : null,
		reserved_usd: formatUsd(nanoUsdOfColumn(row.reserved)),
		rate_card: settled?.card || null,
		batch_id: settled?.batch ?? null,
	};
}

const usageOf = (row: SettledRow) => ({
	prompt_tokens: row.prompt_tokens,
	completion_tokens: row.completion_tokens,
	total_tokens: row.prompt_tokens + row.completion_tokens,
	prompt_tokens_details: { cached_tokens: row.cached_tokens },
	completion_tokens_details: { reasoning_tokens: row.reasoning_tokens },
	/** Audio seconds, images or searches. */
	units: row.units,
});

function unknown(): Fault {
	return new Fault("not_found", "This account has no request of this ID, or it was refused before it was admitted.");
}
