import { type Clock, sleep } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";
import { uuidFromId } from "../../base/id.ts";
import type { Statements } from "../../db/statements.ts";
import { keyPeriod, projectPeriod } from "../../keys/cap-budgets.ts";
import type { KeyEntry, ProjectEntry } from "../../keys/key-entry.ts";
import { accountBalance, keyBalance } from "../../ledger/balance.ts";
import type { CountColumns } from "../../ledger/usage-fields.ts";
import type { RequestLimits } from "../../limits/key-limits.ts";
import { displaySum, formatUsd, jsonUsd, type NanoUsd, nanoUsdOfColumn } from "../../money/nano-usd.ts";
import { queryDatabase } from "./ask-database.ts";

interface UsageRow extends CountColumns {
	model: string;
	created: string;
	reserved: string;
	endpoint: string;
	streamed: boolean;
	/** Null while the request runs, like all columns whose value is known only at its end. */
	basis: "exact" | "estimated" | "recovered" | null;
	ending: string;
	status: number;
	charged: string;
	card: string;
	batch: string | null;
}

/** Longest wait for a row: a settlement is written after one flush interval, a running request after two. */
const WAIT_MS = 400;
const POLL_MS = 50;

/** GET /v1/usage/{id}: finds a request of this account by its `x-request-id` or by the answer's id. Fault not_found. */
export async function usageAnswer(deps: { statements: Statements; clock: Clock }, accountId: string, id: string) {
	const requestId = uuidFromId(id.slice(0, ID_CHARS_MAX));
	if (requestId === undefined) throw unknown();
	for (let waitedMs = 0; ; waitedMs += POLL_MS) {
		const row = await queryDatabase(() => readRequest(deps.statements, accountId, requestId));
		if (row) return answerOf(`req_${requestId.replaceAll("-", "")}`, row);
		if (waitedMs >= WAIT_MS || !isRecent(requestId, deps.clock)) throw unknown();
		await sleep(deps.clock, POLL_MS);
	}
}

const ID_CHARS_MAX = 128;
/** Up to this age, a request's row may not have reached Postgres yet. The figure tolerates clocks that differ. */
const RECENT_MS = 60_000;

/** A UUIDv7 starts with the milliseconds of its creation. */
function isRecent(requestId: string, clock: Clock): boolean {
	const madeMs = Number.parseInt(requestId.replaceAll("-", "").slice(0, 12), 16);
	return Math.abs(clock.wallMs() - madeMs) < RECENT_MS;
}

/** One statement for running and settled requests: between two statements a flush could move the request. */
async function readRequest(
	statements: Statements,
	accountId: string,
	requestId: string,
): Promise<UsageRow | undefined> {
	const [row] = await statements<UsageRow>`
		with request as (select ${requestId}::uuid as id, ${accountId}::text as account)
		select e.model, floor(extract(epoch from e.admitted_at))::bigint as created, e.reserved_nano_usd as reserved, e.endpoint, e.streamed,
			e.basis, e.ending, e.status, e.prompt_tokens, e.cached_tokens, e.completion_tokens, e.reasoning_tokens, e.units,
			e.charged_nano_usd as charged, e.rate_card_id as card, e.batch_id as batch
		from request join usage_event e on e.request_id = request.id and e.account_id = request.account
		union all
		select r.model, floor(extract(epoch from r.admitted_at))::bigint, r.reserved_nano_usd,
			null, null, null, null, null, null, null, null, null, null, null, null, null
		from request join reservation r on r.request_id = request.id and r.account_id = request.account
		limit 1`;
	return row;
}

/** Amounts are decimal US dollars. Fields whose value is known only at the end are null while the request runs. */
function answerOf(id: string, row: UsageRow) {
	const { basis, endpoint, streamed, ending, status, charged, card, batch } = row;
	const isSettled = basis !== null;
	return {
		id,
		object: "usage",
		created: Number(row.created),
		model: row.model,
		status: isSettled ? "settled" : "running",
		endpoint,
		streamed,
		basis,
		ending,
		http_status: status,
		usage: isSettled ? usageOf(row) : null,
		cost_usd: isSettled ? formatUsd(nanoUsdOfColumn(charged)) : null,
		reserved_usd: formatUsd(nanoUsdOfColumn(row.reserved)),
		rate_card: card || null,
		batch_id: batch,
	};
}

const usageOf = (row: UsageRow) => ({
	prompt_tokens: row.prompt_tokens,
	completion_tokens: row.completion_tokens,
	total_tokens: row.prompt_tokens + row.completion_tokens,
	prompt_tokens_details: { cached_tokens: row.cached_tokens },
	completion_tokens_details: { reasoning_tokens: row.reasoning_tokens },
	/** Number of audio seconds, images or searches. */
	units: row.units,
});

function unknown(): Fault {
	return new Fault("not_found", "This account has no request with this ID. Refused requests have no usage record.");
}

/** GET /v1/credits: balance, holds and spending of the account, in OpenRouter's fields and as exact decimals. */
export async function creditsAnswer(statements: Statements, accountId: string) {
	const { balance, available, held, spent } = await queryDatabase(() => accountBalance(statements, accountId));
	return {
		data: {
			/** OpenRouter's fields: the sum of all credit ever added and of all spending, as JSON numbers. */
			total_credits: jsonUsd(displaySum(balance, spent)),
			total_usage: jsonUsd(spent),
			/** Unspent credit: `available_usd` + `held_usd`. */
			balance_usd: formatUsd(balance),
			available_usd: formatUsd(available),
			held_usd: formatUsd(held),
			spent_usd: formatUsd(spent),
		},
	};
}

/** GET /v1/key: limits and spending of the key, in OpenRouter's fields and as exact decimals. */
export async function keyAnswer(statements: Statements, clock: Clock, key: KeyEntry) {
	const period = keyPeriod(key, clock.wallMs());
	const budget = period?.budgets[0];
	const balance = await queryDatabase(() =>
		keyBalance(statements, key.id, budget === undefined ? null : { cap: key.capNanoUsd, budget }),
	);
	return {
		data: {
			label: key.name,
			...capFields(key, period, balance),
			usage: jsonUsd(balance.spent),
			is_free_tier: false,
			spent_usd: formatUsd(balance.spent),
			held_usd: formatUsd(balance.held),
			expires_at: isoTime(key.expiresAtMs),
			project: key.project === null ? null : await projectAnswer(statements, clock, key, key.project),
		},
	};
}

async function projectAnswer(statements: Statements, clock: Clock, key: KeyEntry, project: ProjectEntry) {
	const period = projectPeriod(key, project, clock.wallMs());
	const budget = period?.budgets[0];
	const cap = budget === undefined ? null : { cap: project.capNanoUsd, budget };
	const balance = await queryDatabase(() => keyBalance(statements, project.id, cap, "project"));
	return { id: project.id, name: project.name, ...capFields(project, period, balance) };
}

const RESETS = { lifetime: null, day: "daily", week: "weekly", month: "monthly" } as const;

type Capped = Pick<KeyEntry, "capPeriod" | "models"> & RequestLimits;

function capFields(
	{ capPeriod, models, requestsPerMinute, concurrencyMax, tokensPerMinute }: Capped,
	period: { readonly untilMs: number } | null | undefined,
	{ cap, capSpent, remaining }: Record<"cap" | "remaining", NanoUsd | null> & { capSpent: NanoUsd },
) {
	return {
		/** The key's cap in US dollars as a JSON number; null without a cap. */
		limit: cap === null ? null : jsonUsd(cap),
		limit_remaining: remaining === null ? null : jsonUsd(remaining),
		/** Period of the cap; null for a lifetime cap. */
		limit_reset: RESETS[period ? capPeriod : "lifetime"],
		cap_usd: cap === null ? null : formatUsd(cap),
		cap_period: capPeriod,
		/** Spending that counts against the cap, since the current period started. */
		cap_spent_usd: formatUsd(capSpent),
		cap_renews_at: isoTime(period?.untilMs ?? null),
		remaining_usd: remaining === null ? null : formatUsd(remaining),
		/** Ids of the allowed models; null: all models. */
		models: models === null ? null : [...models],
		limits: { requests_per_minute: requestsPerMinute, concurrency: concurrencyMax, tokens_per_minute: tokensPerMinute },
	};
}

function isoTime(atMs: number | null): string | null {
	return atMs === null ? null : new Date(atMs).toISOString();
}
