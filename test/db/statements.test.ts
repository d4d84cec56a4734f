import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createDatabase } from "../../src/db/database.ts";
import { DatabaseTimeout, isConnectionLost } from "../../src/db/outage.ts";
import { createStatements } from "../../src/db/statements.ts";
import { createTransactional } from "../../src/db/transactional.ts";
import { atEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { withDatabaseProxy } from "../support/tcp-proxy.ts";
import { waitFor } from "../support/wait.ts";

const DEADLINE_MS = 800;

const server = await withDatabase();
const { proxy, url } = withDatabaseProxy(server.url);
const db = createDatabase(
	{ clock: systemClock, log: silentLog },
	{ url, applicationName: "statements test", statementConnectionsMax: 1, statementDeadlineMs: DEADLINE_MS },
);
atEnd(() => db.end());
const lone = statementsOf(server.url, 30_000);
atEnd(() => lone.end());

function statementsOf(url: string, statementDeadlineMs: number) {
	const options = { url, applicationName: "lone", connectionsMax: 1, statementDeadlineMs };
	return createStatements({ clock: systemClock, log: silentLog }, options);
}

test("statements time out on a silent connection, and the following ones succeed", async () => {
	expect(await db.statements`select 1 as one`).toEqual([{ one: 1 }]);
	proxy.freezeExisting();
	const startedAt = performance.now();
	const results = await Promise.allSettled([db.statements`select 2 as two`, db.statements`select 3 as three`]);
	const tookMs = performance.now() - startedAt;
	expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
	expect(results[0]?.status === "rejected" && results[0].reason).toBeInstanceOf(DatabaseTimeout);
	expect(tookMs).toBeLessThan(DEADLINE_MS + 10_000);
	expect(await db.statements`select 4 as four`).toEqual([{ four: 4 }]);
});

/** Terminates the Postgres process that runs `statement`, as soon as it runs. */
async function endOnServer(statement: string): Promise<void> {
	const ended = () => server.sql`
		select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and state = 'active' and query like ${`${statement}%`}`;
	await waitFor(async () => (await ended()).length === 1, "the statement to be ended");
}

test("statements succeed again after the server ended their connection", async () => {
	for (let round = 0; round < 3; round++) {
		const running = Promise.resolve(lone`select pg_sleep(30)`).catch((error) => error);
		await endOnServer("select pg_sleep(30)");
		expect(isConnectionLost(await running)).toBe(true);
		expect(await lone`select 1 as one`).toEqual([{ one: 1 }]);
	}
});

/** PostgreSQL's error during recovery, which the server sends as the answer to the client's first message. */
const said = "SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0";
const STARTING_UP = Buffer.from(`E\0\0\0${String.fromCharCode(4 + said.length)}${said}`, "latin1");

/** Starts a server that ends each connection by `end`. `accepted` returns the number of connections. */
function startEnding(end: (one: { end(bytes?: Uint8Array): void }) => void, at: "once" | "its first message") {
	let accepted = 0;
	const taken = (one: { end(bytes?: Uint8Array): void }) => {
		accepted += 1;
		end(one);
	};
	const socket = at === "once" ? { open: taken, data() {} } : { data: taken };
	const ending = Bun.listen({ hostname: "127.0.0.1", port: 0, socket });
	atEnd(() => ending.stop(true));
	return { url: `postgres://nobody@127.0.0.1:${ending.port}/none`, accepted: () => accepted };
}

test("statements reconnect after a pause if the server refuses or closes connections", async () => {
	const ending = [
		startEnding((one) => one.end(STARTING_UP), "its first message"),
		startEnding((one) => one.end(), "once"),
		startEnding((one) => one.end(), "its first message"),
	];
	const untilMs = performance.now() + 1_000;
	const asking = ending.map(async ({ url }) => {
		const statements = statementsOf(url, 400);
		const work = createTransactional(
			{ clock: systemClock, log: silentLog },
			{ url, applicationName: "lone", statementDeadlineMs: 400, transactionDeadlineMs: 400 },
		);
		atEnd(async () => void (await Promise.all([statements.end(), work.end()])));
		while (performance.now() < untilMs) {
			const [one, other] = await Promise.allSettled([statements`select 1`, work.tx.execute(sql`select 1`)]);
			for (const { status } of [one, other]) expect(status).toBe("rejected");
		}
	});
	await Promise.all(asking);
	for (const { accepted } of ending) {
		expect(accepted()).toBeGreaterThan(2);
		// Two connections retry with pauses that grow to at least 250 ms, until the statement's deadline.
		expect(accepted()).toBeLessThan(2 * 12);
	}
});
