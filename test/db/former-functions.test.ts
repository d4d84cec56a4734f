/** Tests of the SQL functions of two versions on one database. `versions/upgrade.test.ts` runs the previous program. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createDatabase } from "../../src/db/database.ts";
import { FUNCTION_SET } from "../../src/db/function-set.ts";
import { migrate } from "../../src/db/migrate.ts";
import { SettledColumns } from "../../src/ledger/event.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { settledEvent, wish } from "../ledger/fixture.ts";
import { atEnd } from "../support/at-end.ts";
import { chatModel, withService } from "../support/service.ts";
import { reply, startUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

const FORMER_SET = "tollgate_000000000000";
const FUNCTIONS = join(import.meta.dir, "../../src/db/functions");

const upstream = startUpstream({ dialect: "vllm" });
atEnd(() => upstream.stop());
upstream.always(() => reply().text("one two three"));
const service = await withService({ models: chatModel({ url: upstream.url, dialect: "vllm" }) });
const url = service.db.url.replace(FUNCTION_SET, FORMER_SET);
const sql = postgres(url, { max: 2, onnotice: () => {} });
atEnd(() => sql.end());
await sql.begin(async (transaction) => {
	await transaction.unsafe(`create schema ${FORMER_SET}; set local check_function_bodies = off`);
	for (const name of new Bun.Glob("*.sql").scanSync(FUNCTIONS))
		await transaction.unsafe(readFileSync(join(FUNCTIONS, name), "utf8"));
	await transaction`insert into function_set (name, version) values (${FORMER_SET}, '0.0.0')`;
});
const former = createDatabase({ clock: systemClock, log: silentLog }, { url, applicationName: "former" });
atEnd(() => former.end());

const chat = (secret: string) =>
	service.post("/v1/chat/completions", secret, {
		model: "test-model",
		messages: [{ role: "user", content: "Hello" }],
		max_tokens: 8,
	});

async function joins(id: string) {
	const [joined] = await sql`select instance_join(${id}, 60000) as epoch`;
	const epoch = Number(joined?.epoch);
	await sql`select instance_go_live(${id}, ${epoch}, (select coalesce(max(seq), 0) from control_log), 60000)`;
	return { epoch, store: createPgLedgerStore({ statements: former.ledger }, id, epoch) };
}

test("the former version's SQL functions stay when this version starts", async () => {
	const functionsOf = (set: string) => sql`
		select p.oid, p.xmin from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = ${set} order by 1`;
	const before = await functionsOf(FORMER_SET);
	expect(before.length).toBeGreaterThan(100);
	await migrate({ log: silentLog }, service.db.url);
	expect([...(await functionsOf(FORMER_SET))]).toEqual([...before]);
	const [row] = await sql`select 'lease_grant'::regproc::text as name, current_schema() as first`;
	expect(row).toEqual({ name: "lease_grant", first: FORMER_SET });
});

test("the SQL functions of two versions draw on one budget and settle exactly", async () => {
	const { accountId, keyId, secret } = await service.customer();
	const { store } = await joins("former-1");
	const want = 1_000_000_000;
	const granted = await store.grant([wish(accountId, want), wish(keyId, want)]);
	expect(granted.map(({ amount }) => Number(amount))).toEqual([want, want]);
	expect((await chat(secret)).status).toBe(200);
	await service.settled();
	const [open] = await sql`
		select sum(granted_nano_usd)::bigint as granted, count(*)::int as leases from lease where budget_id = ${accountId} and state = 'open'`;
	expect(open?.leases).toBe(2);
	const [budget] = await sql`select drawn_nano_usd as drawn from budget where id = ${accountId}`;
	expect(budget?.drawn).toBe(open?.granted);
	const before = await service.balance(accountId);
	const settled = SettledColumns.of([settledEvent(accountId, keyId, 300_000_000)]);
	for (const fresh of [1, 0]) expect(await store.flush(settled, "[]")).toMatchObject({ late: false, fresh });
	await store.close();
	expect((await service.balance(accountId)).spent - before.spent).toBe(300_000_000);
	expect((await service.reconciled()).filter((check) => !check.ok)).toEqual([]);
});

test("each of two running versions applies a revocation made by the other", async () => {
	const [theirs, ours] = [await service.customer(), await service.customer()];
	for (const { secret } of [theirs, ours]) expect((await chat(secret)).status).toBe(200);
	await sql`
		with k as (update api_key set state = 'revoked', revoked_at = clock_timestamp() where id = ${theirs.keyId} returning id, key_fields(api_key) as fields)
		select control_append('key', k.id, k.fields) from k`;
	await waitFor(
		async () => (await chat(theirs.secret)).status === 401,
		"the former version's revocation to be in force",
	);
	const { epoch } = await joins("former-2");
	const [entry] = await service.db.sql`
		with k as (update api_key set state = 'revoked', revoked_at = clock_timestamp() where id = ${ours.keyId} returning id, key_fields(api_key) as fields)
		select control_append('key', k.id, k.fields) as seq from k`;
	const pending = async () => {
		const rows =
			await sql`select id from instance_now where state = 'live' and applied_seq < ${entry?.seq} order by id`;
		return rows.map(({ id }) => id).join();
	};
	await waitFor(async () => (await pending()) === "former-2", "this version to have applied the entry");
	await sql`select from instance_renew('former-2', ${epoch}, ${entry?.seq}, 60000)`;
	expect(await pending()).toBe("");
});

test("the former version's SQL functions return idle credit to this version", async () => {
	const credit = 1_000_000_000;
	const { accountId, secret } = await service.customer({ exactCredit: credit });
	const { store } = await joins("former-3");
	await store.grant([{ ...wish(accountId, credit), min: nanoUsd(credit) }]);
	let status = 0;
	const answer = chat(secret).then((response) => (status = response.status));
	await waitFor(async () => {
		for (const { budget, ticket } of await store.recalls())
			await store.giveBack([{ op: crypto.randomUUID(), budget, amount: nanoUsd(credit), recall: ticket }]);
		return status !== 0;
	}, "the former version to be asked and the request to be answered");
	await answer;
	expect(status).toBe(200);
	await service.settled();
	await store.close();
	expect((await service.reconciled()).filter((check) => !check.ok)).toEqual([]);
});
