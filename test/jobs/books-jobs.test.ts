import { expect, test } from "bun:test";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { newId } from "../../src/base/id.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { lastReconciliation } from "../../src/console/operator/reconciliation.ts";
import { connectionEndedError } from "../../src/db/outage.ts";
import type { Statements } from "../../src/db/statements.ts";
import { startJobs } from "../../src/jobs/jobs.ts";
import { createBooksHistory, deleteOldBooksRuns, reconcile } from "../../src/ledger/reconciler.ts";
import { withDatabase } from "../support/database.ts";
import { waitFor } from "../support/wait.ts";

const db = await withDatabase();
const { statements, sql } = db;

/** Creates a console's jobs; each starts when the test calls `begin`. */
function jobsOf(verifyRowsPerS: number, { statements, log }: { statements: Statements; log: Log }) {
	const waiting: (() => void)[] = [];
	const clock: Clock = {
		...systemClock,
		after(_delayMs, run) {
			waiting.push(run);
			return () => {};
		},
	};
	const jobs = startJobs(
		{
			clients: { statements, sums: statements },
			clock,
			log,
			notices: {
				...{ statements, clock, serviceName: "service" },
				mailer: { send: async () => {}, canSend: false } as never,
				sendWebhook: async () => {
					throw new Error("there is nothing to send");
				},
				origin: () => "http://127.0.0.1",
			},
			cards: undefined,
			retention: { archive: null, usageDays: 0, auditDays: 400, refusalDays: 30 },
		} as never,
		{ verifyRowsPerS },
	);
	const begin = () => {
		for (const run of waiting.splice(0)) run();
	};
	return { begin, stop: jobs.stop };
}

async function runJobs(verifyRowsPerS: number): Promise<void> {
	const { begin, stop } = jobsOf(verifyRowsPerS, { statements, log: silentLog });
	begin();
	await stop();
}

test("a failed job is logged with its next try, unless the process is stopping", async () => {
	const said: string[] = [];
	const log = { ...silentLog, warn: (message: string) => void said.push(message) };
	const failing = Object.assign(() => Promise.reject(connectionEndedError()), { end: async () => {} }) as Statements;
	const ends = jobsOf(0, { statements: failing, log });
	ends.begin();
	await ends.stop();
	expect(said).toEqual([]);
	const goesOn = jobsOf(0, { statements: failing, log });
	goesOn.begin();
	await waitFor(() => said.length > 0, "a job's failure to be said");
	expect(said[0]).toContain("it is tried again");
	await goesOn.stop();
});

test("a console verifies the days that it sealed, unless verification is off", async () => {
	await sql`
		insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, created_at)
		values ('e', 'acc', 'adjustment', 5, 'x', 'test', now() - interval '3 days')`;
	await runJobs(0);
	expect((await sql`select verified_at from sealed_day where verified_at is null`).length).toBeGreaterThanOrEqual(2);
	await sql`update ledger_entry set note = 'changed'`;
	await runJobs(500);
	expect((await reconcile(statements)).checks.find(({ name }) => name.startsWith("every closed day"))).toMatchObject({
		ok: false,
		detail: expect.stringContaining("the ledger entries were changed"),
	});
});

test("old results of the books check are deleted, except the first good one in a row", async () => {
	const history = createBooksHistory(statements);
	const add = (ok: boolean) => history.add({ ok, checks: [] }, "test");
	await add(false);
	const good = await add(true);
	await add(true);
	await sql`update reconciliation_run set at = at - interval '401 days'`;
	const since = good.atMs - 401 * 86_400_000;
	const young = await add(true);
	expect(await lastReconciliation(statements)).toMatchObject({ ok: true, atMs: young.atMs, greenSinceMs: since });
	await deleteOldBooksRuns(statements);
	expect((await sql`select id from reconciliation_run order by id`).map(({ id }) => id)).toEqual([good.id, young.id]);
	expect(await lastReconciliation(statements)).toMatchObject({ ok: true, atMs: young.atMs, greenSinceMs: since });
	await add(false);
	await deleteOldBooksRuns(statements);
	expect((await sql`select 1 from reconciliation_run`).length).toBe(2);
});

test("the clean-up deletes only expired sessions", async () => {
	const user = newId("usr");
	await sql`insert into console_user (id, name, email, email_verified) values (${user}, 'A', 'a@example.com', true)`;
	await sql`
		insert into session (id, token, user_id, expires_at) values
			('over', 'a', ${user}, now() - interval '1 hour'), ('open', 'b', ${user}, now() + interval '1 hour')`;
	await runJobs(0);
	expect(await sql`select id from session`).toEqual([{ id: "open" }] as never);
});
