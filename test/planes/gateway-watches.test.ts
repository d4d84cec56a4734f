import { expect, test } from "bun:test";
import { createCleanup } from "../../src/base/cleanup.ts";
import { silentLog } from "../../src/base/log.ts";
import type { Watch } from "../../src/base/watch.ts";
import { poolerProblem } from "../../src/db/new-client.ts";
import { type BooksCheck, createGatewayHealth, startGatewayWatches } from "../../src/planes/gateway-health.ts";
import { atEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { startFakePooler } from "../support/fake-pooler.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

function healthOf(books: Pick<Watch<BooksCheck | undefined>, "last">, problem?: string, pooled?: string) {
	const rest = {
		instanceLease: { problem: () => problem, present: () => undefined },
		catalog: { current: () => ({ revision: 1 }), problems: () => [] },
		payments: { last: () => 0 },
		durability: { problem: () => undefined },
		lostActs: { last: () => [] },
		pooled: { last: () => pooled },
		room: { problem: () => undefined },
		console: { problem: () => undefined },
		stopping: () => false,
	};
	return createGatewayHealth({ ...rest, books } as never);
}

test("the age of the last books check is measured with Postgres's clock", async () => {
	const db = await withDatabase();
	await db.sql`insert into reconciliation_run (id, at, ok, by, checks) values ('rec_1', now() - interval '59 minutes', true, 'timer', '[]')`;
	for (const aheadMs of [-DAY_MS, 0, DAY_MS]) {
		const clock = createManualClock(Date.now() + aheadMs);
		const cleanup = createCleanup({ clock, log: silentLog });
		const { books } = startGatewayWatches({ statements: db.statements, url: db.url, clock, log: silentLog, cleanup });
		const health = healthOf(books);
		clock.advance(5_000);
		await waitFor(() => books.last() !== undefined, "the books to be seen");
		expect(health().warnings).toEqual([]);
		clock.advance(MINUTE_MS + 1);
		expect(health().warnings).toEqual(["the books were not checked for an hour: no console is running"]);
		await cleanup.run();
	}
});

test("`/readyz` names a pooler that switches to transaction mode", async () => {
	const db = await withDatabase();
	const mode = { byTransaction: false };
	const pooler = startFakePooler(db.url, mode);
	atEnd(() => pooler.stop());
	const clock = createManualClock();
	const cleanup = createCleanup({ clock, log: silentLog });
	const deps = { statements: db.statements, clock, log: silentLog, cleanup };
	const { pooled } = startGatewayWatches({ ...deps, url: pooler.url });
	expect(await poolerProblem(pooler.url)).toBe(undefined);
	mode.byTransaction = true;
	clock.advance(MINUTE_MS);
	await waitFor(() => pooled.last() !== undefined, "the pooler to be seen");
	expect(healthOf({ last: () => undefined }, undefined, pooled.last())().warnings.join()).toContain("session mode");
	await cleanup.run();
});

test("a closed gate or a failed journal makes `/readyz` report not ready", () => {
	const books = { last: () => undefined };
	expect(healthOf(books)().ready).toBe(true);
	const full = "the journal's disk is full";
	expect(healthOf(books, full)()).toMatchObject({ ready: false, reasons: [full] });
});
