/** Overview pages whose lists are truncated, or whose requests were deleted. */
import { expect, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import type { ConsoleParts } from "../../src/console/console-deps.ts";
import { readLiveOverview } from "../../src/console/live/overview.ts";
import { operatorSummary } from "../../src/console/operator/operator-summary.ts";
import { goLive, makeAccount, settledEvent } from "../ledger/fixture.ts";
import { withDatabase } from "../support/database.ts";
import { foldAll } from "../support/sums.ts";

const db = await withDatabase();
const { sql, statements } = db;
await makeAccount(db, "acc", 1_000_000, { key: null });
await sql`insert into account (id, email, name) values ('acc', 'acc@example.com', 'acc')`;
await sql`insert into api_key (id, account_id, name, digest, prefix, last_four, models) values ('key', 'acc', 'key', 'd', 'p', 'l', '[]')`;

test("the overview shows the first request as done after all requests are deleted", async () => {
	const firstRequest = async () => (await readLiveOverview(statements, "acc")).checklist.firstRequest;
	expect(await firstRequest()).toBe(false);
	const epoch = await goLive(db, "gone");
	await sql`select lease_close('gone', ${epoch}, false, 100, '[]')`;
	const event = settledEvent("acc", "key", 7, { at: Date.now() });
	await sql`select ledger_settle_late('gone', ${epoch}, ${JSON.stringify(event)}::text::json)`;
	expect(await firstRequest()).toBe(true);
	await foldAll(statements);
	// Deletes the requests, as the clean-up does after RETENTION_USAGE_DAYS.
	await sql`delete from usage_event`;
	expect(await firstRequest()).toBe(true);
});

test("an operator sees the number of all pending top-ups", async () => {
	await sql`insert into top_up (id, account_id, amount_nano_usd, method, reference)
		select 'top_' || n, 'acc', 100000000000, 'transfer', ${newUuid()} || n from generate_series(1, 23) n`;
	const summary = await operatorSummary({
		statements,
		config: { topUpSecondLook: null },
		deployments: { current: async () => ({ models: [], replicas: [], connected: () => true }) },
	} as unknown as ConsoleParts);
	expect(summary.waitingTopUps).toHaveLength(20);
	expect(summary.topUpsWaiting).toBe(23);
});
