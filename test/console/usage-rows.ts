import type { TestDatabase } from "../support/database.ts";

/** Inserts settled requests of an account, spread over the last `days`. */
export async function writeUsage(
	db: TestDatabase,
	of: {
		accountId: string;
		keyIds: readonly string[];
		rows: number;
		days: number;
		models: number;
		/** Project of every seventh request; with `allInProject`, of all requests but the oldest 50. */
		projectId?: string;
		allInProject?: boolean;
	},
): Promise<void> {
	const perStatement = 100_000;
	const write = async (from: number) => {
		const count = Math.min(perStatement, of.rows - from);
		// One row in 5,000 is of a rare model, and about one in 1,000 is of a failed request.
		await db.sql`
			insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
				reserved_nano_usd, charged_nano_usd, basis, ending, status, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens,
				admitted_at, first_token_ms, duration_ms, settled_at, project_id)
			select gen_random_uuid(), ${of.accountId}, (string_to_array(${of.keyIds.join(",")}, ','))[1 + n % ${of.keyIds.length}::int], 'none', 0,
				case when n % 5000 = 0 then 'rare-model' else 'model-' || (n % ${of.models}::int) end, 'none@1', 'chat', n % 2 = 0,
				100000 + n % 1000, 100000 + n % 1000, 'exact',
				case when n % 997 = 0 then 'upstream_failed' when n % 101 = 0 then 'client_left' else 'finished' end,
				case when n % 997 = 0 then 502 else 200 end, 100 + n % 50, n % 20, 50 + n % 100, 0,
				at, case when n % 997 = 0 then null else 120 + n % 300 end, 900 + n % 2000, at + interval '1 second',
				case when case when ${of.allInProject === true} then n < ${of.rows - 50}::int else n % 7 = 0 end then ${of.projectId ?? null}::text end
			from (select n, now() - interval '2 minutes' - n * (${of.days}::int * interval '1 day' / ${of.rows}::int) as at
				from generate_series(${from}::int, ${from + count - 1}::int) n) g`;
	};
	const starts = Array.from({ length: Math.ceil(of.rows / perStatement) }, (_, at) => at * perStatement);
	await Promise.all(starts.map(write));
}

export async function writeRefusals(
	db: TestDatabase,
	of: { accountId: string; keyIds: readonly string[]; rows: number; days: number; models: number },
): Promise<void> {
	await db.sql`
		insert into refused_request (request_id, account_id, key_id, model, endpoint, code, status, message,
			available_nano_usd, held_nano_usd, required_nano_usd, affordable_tokens, refused_at)
		select gen_random_uuid(), ${of.accountId}, (string_to_array(${of.keyIds.join(",")}, ','))[1 + n % ${of.keyIds.length}::int],
			case when n % 5000 = 0 then 'rare-model' else 'model-' || (n % ${of.models}::int) end, 'chat', 'insufficient_quota', 402,
			'The credit of this account does not cover the request.', n, 0, 1000000 + n, 12,
			now() - interval '2 minutes' - n * (${of.days}::int * interval '1 day' / ${of.rows}::int)
		from generate_series(0, ${of.rows - 1}::int) n`;
}
