import { expect, test } from "bun:test";
import { createKey } from "../../../src/keys/key-admin.ts";
import { createProject, listProjects } from "../../../src/keys/project-admin.ts";
import { createDigest } from "../../../src/keys/secret.ts";
import { accountBalance } from "../../../src/ledger/balance.ts";
import { reconcile } from "../../../src/ledger/reconciler.ts";
import { nanoUsd } from "../../../src/money/nano-usd.ts";
import { type ServeProcess, startServe } from "../../chaos/serve-process.ts";
import { atEnd } from "../../support/at-end.ts";
import { ask, priceOf } from "../../support/chat.ts";
import { withDatabase } from "../../support/database.ts";
import { paidAccount } from "../../support/paid-account.ts";
import { requestsTo } from "../../support/requests.ts";
import { PEPPER, serviceFolder } from "../../support/service-folder.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

/** A real server process is killed with `kill -9` while requests run, then started again. */

const CREDIT = 100_000_000_000;
let served: ServeProcess | undefined;

const db = await withDatabase();
atEnd(async () => {
	served?.kill("SIGKILL");
	await served?.exited;
});
const upstream = withUpstream("vllm");
const { environment } = serviceFolder(db, upstream.url);

async function start(): Promise<ServeProcess> {
	served = await startServe(environment("crash", { LEASE_TTL_S: "5" }));
	return served;
}

async function customer(): Promise<{ accountId: string; secret: string }> {
	const accountId = await paidAccount(db.statements, nanoUsd(CREDIT));
	// The key belongs to a project with a cap, so that the replay settles on account, project and key.
	const project = { name: "p", capNanoUsd: nanoUsd(CREDIT), capPeriod: "day" } as const;
	const { id: projectId } = await createProject(db.statements, accountId, project);
	const maker = { statements: db.statements, digest: createDigest(PEPPER), serviceName: "service" };
	const { secret } = await createKey(maker, accountId, { name: "test", projectId });
	return { accountId, secret };
}

const usageOf = (accountId: string) => db.sql`select * from usage_event where account_id = ${accountId}`;

/** Ends the dead process's SQL statements, which Postgres would still execute once the lock is released. */
const endStatements = () =>
	waitFor(async () => {
		const left = await db.sql`
			select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'tollgate%'`;
		return left.length === 0;
	}, "the statements of the dead process to be ended");

test("a crash charges finished requests exactly and other requests for their output", async () => {
	const first = await start();
	const open = await customer();
	const waiting = await customer();
	const done = await customer();
	const streamed = ask("one two three", { stream: true });

	upstream.next(reply().text("a b c d").stallAfter(3));
	const client = await requestsTo(first.url).openChat(open.secret, streamed);
	await client.until('" c"');
	upstream.next(reply().hang());
	const early = await requestsTo(first.url).openChat(waiting.secret, streamed);
	await upstream.waitForRequest(2);
	// The lock blocks settlements in Postgres until the process is dead, so that only the journal has them.
	await db.sql.begin(async (locking) => {
		await locking`lock table usage_event in access exclusive mode`;
		for (let sent = 0; sent < 5; sent++) {
			upstream.next(reply().text("a b"));
			const response = await requestsTo(first.url).chat(done.secret, streamed);
			expect(await response.text()).toContain("[DONE]");
		}
		first.kill("SIGKILL");
		await first.exited;
		await endStatements();
	});
	expect(client.text()).not.toContain("[DONE]");
	early.leave();
	expect(await usageOf(done.accountId)).toHaveLength(0);

	await start();
	await waitFor(async () => (await usageOf(open.accountId)).length > 0, "the journal to be handed in");
	await waitFor(
		async () => (await db.sql`select 1 from lease where state = 'open'`).length === 0,
		"its leases to be closed",
	);
	const settled = await usageOf(done.accountId);
	expect(settled).toHaveLength(5);
	for (const row of settled)
		expect(row).toMatchObject({ ending: "finished", basis: "exact", charged_nano_usd: String(priceOf(6, 2)) });

	const [row, ...none] = await usageOf(open.accountId);
	expect(none).toEqual([]);
	expect(row).toMatchObject({ ending: "crashed", basis: "recovered", prompt_tokens: 6, completion_tokens: 3 });
	expect(Number(row?.charged_nano_usd)).toBe(priceOf(6, 3));

	for (const [accountId, spent] of [
		[open.accountId, priceOf(6, 3)],
		[waiting.accountId, 0],
		[done.accountId, 5 * priceOf(6, 2)],
	] as const) {
		const { available, held, balance } = await accountBalance(db.statements, accountId);
		expect([Number(available), Number(held), Number(balance)]).toEqual([CREDIT - spent, 0, CREDIT - spent]);
		const [project] = (await listProjects(db.statements, accountId)).items;
		expect(project?.spentNanoUsd as number).toBe(spent);
		for (const { project_id } of await usageOf(accountId)) expect(project_id).toBe(project?.id);
	}
	expect((await reconcile(db.statements)).checks.filter(({ ok }) => !ok)).toEqual([]);
}, 30_000);
