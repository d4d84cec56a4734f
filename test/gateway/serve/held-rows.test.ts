import { expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { waitForAllInstances } from "../../../src/cluster/wait-for-all-instances.ts";
import { revokeKey } from "../../../src/keys/key-admin.ts";
import { ask } from "../../support/chat.ts";
import { LONG } from "../../support/long-form.ts";
import { openTransaction } from "../../support/open-transaction.ts";
import { requestsTo } from "../../support/requests.ts";
import { secondGateway } from "../../support/second-gateway.ts";
import { withChat } from "../../support/service.ts";
import { foldAll } from "../../support/sums.ts";
import { reply } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

/** Time limit of a request on a busy machine. A statement that waits for a locked row would take longer. */
const PROMPT_MS = 8_000;

const { upstream, service } = await withChat({ dialect: "vllm" });
const { sql, statements, liveness } = service.db;
const other = await secondGateway(service);

const send = (url: string, secret: string, signal?: AbortSignal) =>
	requestsTo(url).chat(secret, ask("hello there", { max_tokens: 20 }), {
		headers: { "idempotency-key": crypto.randomUUID() },
		...(signal ? { signal } : {}),
	});

/**
 * Uses the service as a customer without locked rows: requests, look-ups, credit, limits and the revocation of the key.
 */
async function live(customer: { accountId: string; keyId: string; secret: string }): Promise<void> {
	for (const url of [service.url, other.url]) {
		for (const nth of [1, 2]) {
			const response = await send(url, customer.secret);
			expect([nth, response.status]).toEqual([nth, 200]);
			await response.text();
		}
	}
	await waitFor(async () => (await service.usage(customer.accountId)).length === 4, "the usage", PROMPT_MS);
	const entry = await revokeKey(statements, { id: customer.keyId, accountId: customer.accountId });
	const everywhere = await waitForAllInstances({ liveness, clock: systemClock }, entry, PROMPT_MS);
	expect(everywhere.pending).toEqual([]);
	expect(everywhere.effective).toBe(true);
	expect((await send(service.url, customer.secret)).status).toBe(401);
}

/**
 * Records SQL statements about money and admission that wait for a row lock. Returns a function that stops recording.
 */
function watchWaits() {
	const waits = new Set<string>();
	let stopped = false;
	const watching = (async () => {
		while (!stopped) {
			const rows = await sql<{ query: string }[]>`
				select query from pg_stat_activity
				where datname = current_database() and application_name ~ '(liveness|ledger)$'
					and wait_event_type = 'Lock' and wait_event in ('transactionid', 'tuple')`;
			for (const { query } of rows) waits.add(query);
			await Bun.sleep(20);
		}
	})();
	return async () => {
		stopped = true;
		await watching;
		return [...waits];
	};
}

/** Tables that a request or the management of its key reads or writes. */
const TABLES = [
	"account",
	"api_key",
	"budget",
	"lease",
	"lease_op",
	"usage_event",
	"key_share",
	"recall",
	"reservation",
	"instance_beat",
].map((name) => `public.${name}`);
/** The long run (`LONG`) tests all tables of the database. */
const all = await sql<{ name: string }[]>`
	select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
	where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema') order by 1`;
const tables = all.filter(({ name }) => LONG || TABLES.includes(name));

test("a database lock on one account's rows delays only this account's requests", async () => {
	// Sends requests of the customer whose rows are locked, so that as many tables as possible have rows of this
	// customer.
	const holder = await service.customer({ settings: { requestsPerMinute: 10_000, concurrencyMax: 1_000 } });
	for (const url of [service.url, other.url]) expect((await send(url, holder.secret)).status).toBe(200);
	upstream.next(reply().hang());
	const hangUp = new AbortController();
	const running = send(service.url, holder.secret, hangUp.signal);
	await waitFor(async () => (await sql`select 1 from reservation`).length > 0, "a request to be shown as running");
	await sql`select lease_recall('none', 1, '["nothing"]')`;
	const asked: Promise<unknown>[] = [];
	const heldIn: string[] = [];
	for (const { name } of tables) {
		if ((await sql.unsafe(`select 1 from ${name} limit 1`)).length === 0) continue;
		const customer = await service.customer({ settings: { requestsPerMinute: 1_000, concurrencyMax: 100 } });
		const others = `select 1 from ${name} t where position($1 in t::text) = 0 and position($2 in t::text) = 0 for update`;
		const release = await openTransaction(sql, (tx) => tx.unsafe(others, [customer.accountId, customer.keyId]));
		try {
			heldIn.push(name);
			const waited = watchWaits();
			// The customer with the locked rows also sends requests, so that its blocked rows are in the same batches as the
			// other customer's.
			for (const url of [service.url, other.url]) asked.push(send(url, holder.secret, hangUp.signal));
			await live(customer).catch((error) => {
				throw new Error(`all rows of ${name} but its own are held, and a customer notices`, { cause: error });
			});
			expect({ name, waited: await waited() }).toEqual({ name, waited: [] });
		} finally {
			await release();
		}
	}
	hangUp.abort();
	await Promise.allSettled([...asked, running]);
	for (const table of TABLES) expect(heldIn).toContain(table);
	await service.settled();
	expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
}, 120_000);

test("a key can be revoked while its usage sums wait for a database lock", async () => {
	const [holder, customer] = [await service.customer(), await service.customer()];
	await (await send(service.url, holder.secret)).text();
	await waitFor(async () => (await service.usage(holder.accountId)).length === 1, "the holder's usage", PROMPT_MS);
	await foldAll(statements);
	// The lock stops the aggregation, so that the next sums are older than the transaction that takes the row lock.
	const goOn = await openTransaction(sql, (tx) => tx`select 1 from usage_cursor for update`);
	for (const { secret } of [holder, customer]) await (await send(service.url, secret)).text();
	await waitFor(async () => (await service.usage(holder.accountId)).length === 2, "the holder's usage", PROMPT_MS);
	await waitFor(async () => (await service.usage(customer.accountId)).length === 1, "the usage", PROMPT_MS);
	const letGo = await openTransaction(
		sql,
		(transaction) => transaction`select 1 from usage_total where account_id = ${holder.accountId} for update`,
	);
	await goOn();
	const folding = statements`select usage_fold()`.catch(() => undefined);
	try {
		const waiting = () => sql`
			select 1 from pg_stat_activity where datname = current_database() and query ~ 'usage_fold' and wait_event_type = 'Lock'`;
		await waitFor(async () => (await waiting()).length > 0, "the sums to wait for the row that is held", 4 * PROMPT_MS);
		expect((await revokeKey(statements, { id: customer.keyId, accountId: customer.accountId })).seq).toBePositive();
		// The job that updates the hourly sums is the only statement that may wait for the row.
		expect((await waiting()).length).toBeGreaterThan(0);
	} finally {
		await letGo();
		await folding;
	}
}, 60_000);
