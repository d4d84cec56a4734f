import { expect, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import { logPage } from "../../src/console/log/log-page.ts";
import { revenueSeries } from "../../src/console/operator/revenue.ts";
import { rebuildUsage } from "../../src/console/usage/usage-fold.ts";
import { usageSeries } from "../../src/console/usage/usage-query.ts";
import { goLive, makeAccount, settledEvent } from "../ledger/fixture.ts";
import { withDatabase } from "../support/database.ts";
import { foldAll } from "../support/sums.ts";

const db = await withDatabase();
const { sql, statements } = db;
const HOUR_MS = 3_600_000;

test("a request declared lost and settled later counts once in the usage", async () => {
	await sql`insert into budget (id, kind, account_id) values ('proj_1', 'project', 'acc')`;
	await makeAccount(db, "acc", 1_000_000, { key: null });
	await sql`insert into account (id, email, name) values ('acc', 'acc@example.com', 'acc')`;
	await sql`insert into api_key (id, account_id, name, digest, prefix, last_four, models) values ('key', 'acc', 'key', 'd', 'p', 'l', '[]')`;
	const epoch = await goLive(db, "lost");
	const admittedMs = Date.now() - 3 * HOUR_MS;
	const ids = [newUuid(), newUuid(), newUuid()];
	for (const id of ids)
		await sql`insert into reservation (request_id, account_id, key_id, instance_id, epoch, model, reserved_nano_usd, admitted_at)
			values (${id}, 'acc', 'key', 'lost', ${epoch}, 'm', 100, to_timestamp(${admittedMs / 1000}))`;
	await sql`update reservation set project_id = 'proj_1'`;
	await sql`select lease_close('lost', ${epoch}, true, 100, '[]')`;
	const late = (id: string | undefined) =>
		sql`select ledger_settle_late('lost', ${epoch}, ${JSON.stringify(settledEvent("acc", "key", 7, { id: id as string, at: admittedMs, budgets: ["proj_1"] }))}::text::json)`;
	// Settles three requests late: when the sums lack the attested row, when they may contain it, and when they contain
	// it.
	await late(ids[0]);
	await foldAll(statements);
	await late(ids[1]);
	await foldAll(statements);
	await sql`update usage_cursor set folded_at = folded_at + interval '10 minutes'`;
	await late(ids[2]);
	await sql`update usage_cursor set folded_at = folded_at - interval '10 minutes'`;
	await foldAll(statements);
	const range = { fromMs: admittedMs - HOUR_MS, toMs: Date.now(), model: null, keyId: null, projectId: null } as const;
	const sums = async (projectId: string | null = null) => {
		const { groups } = await usageSeries(statements, "acc", {
			...range,
			projectId,
			bucket: "hour",
			group: "status",
			status: null,
		});
		return Object.fromEntries(groups.map(({ id, requests, costNanoUsd }) => [id, [requests, Number(costNanoUsd)]]));
	};
	const ofService = async () => {
		const { groups } = await revenueSeries(statements, { ...range, bucket: "hour", group: "code" });
		return groups.map(({ id, requests, costNanoUsd }) => [id, requests, Number(costNanoUsd)]);
	};
	expect(await sums()).toEqual({ ok: [3, 21] });
	expect(await ofService()).toEqual([["finished", 3, 21]]);
	expect(await sums("proj_1")).toEqual({ ok: [3, 21] });
	const log = await logPage(statements, "acc", { ...range, status: null, batchId: null }, { asked: 10, after: null });
	expect(log.map(({ statusClass }) => statusClass)).toEqual(["ok", "ok", "ok"]);
	await rebuildUsage(statements);
	expect(await sums()).toEqual({ ok: [3, 21] });
	expect(await ofService()).toEqual([["finished", 3, 21]]);
});
