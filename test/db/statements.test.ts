import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createDatabase } from "../../src/db/database.ts";
import { DatabaseTimeout, isConnectionLost } from "../../src/db/outage.ts";
import { createStatements } from "../../src/db/statements.ts";
import { atEnd, untilEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { waitFor } from "../support/wait.ts";

const DEADLINE_MS = 300;

const server = await withDatabase();
const url = new URL(server.url);
const proxy = untilEnd(startTcpProxy({ hostname: url.hostname, port: Number(url.port) }));
url.port = String(proxy.port);
const db = createDatabase(
	{ clock: systemClock, log: silentLog },
	{ url: url.href, applicationName: "statements test", statementConnectionsMax: 1, statementDeadlineMs: DEADLINE_MS },
);
atEnd(() => db.end());

test("a statement on a connection that never answers again is given up in time, and the next one works", async () => {
	expect(await db.statements`select 1 as one`).toEqual([{ one: 1 }]);
	proxy.freezeExisting();
	const startedAt = performance.now();
	const results = await Promise.allSettled([db.statements`select 2 as two`, db.statements`select 3 as three`]);
	const tookMs = performance.now() - startedAt;
	expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
	expect(results[0]?.status === "rejected" && results[0].reason).toBeInstanceOf(DatabaseTimeout);
	// Without a deadline it would be for ever.
	expect(tookMs).toBeLessThan(DEADLINE_MS + 10_000);
	expect(await db.statements`select 4 as four`).toEqual([{ four: 4 }]);
});

test("an error of the database is no reason to drop the connection", async () => {
	await db.statements`select 1`;
	const before = proxy.accepted();
	await expect(Promise.resolve(db.statements`select 1 / 0`)).rejects.toThrow("division by zero");
	expect(await db.statements`select 1 as one`).toEqual([{ one: 1 }]);
	expect(proxy.accepted()).toBe(before);
});

test("a statement after the connections were cut works", async () => {
	await db.statements`select 1`;
	proxy.reset();
	// What was under way when the line broke may fail; what comes after it must not.
	await waitFor(
		async () => (await Promise.resolve(db.statements`select 1`).catch(() => [])).length === 1,
		"a new connection",
	);
	expect(await db.statements`select 1 as one`).toEqual([{ one: 1 }]);
});

test("of a connection that the server ends in the middle of a statement the next one hears nothing", async () => {
	await db.statements`select 1`;
	for (let round = 0; round < 3; round++) {
		const running = Promise.resolve(db.statements`select pg_sleep(30)`).catch((error) => error);
		await waitFor(
			async () =>
				(
					await server.sql`
						select pg_terminate_backend(pid) from pg_stat_activity
						where datname = current_database() and state = 'active' and query like 'select pg_sleep(30)%'`
				).length === 1,
			"the statement to be ended",
		);
		expect(isConnectionLost(await running)).toBe(true);
		expect(await db.statements`select 1 as one`).toEqual([{ one: 1 }]);
	}
});

/** As PostgreSQL says it while it reads its log: an ErrorResponse of the protocol, in place of an answer to the first message. */
const said = "SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0";
const STARTING_UP = Buffer.from(`E\0\0\0${String.fromCharCode(4 + said.length)}${said}`, "latin1");

test("a server that lets nobody in yet is spared: what asks again and again connects at a pace", async () => {
	let accepted = 0;
	const socket = {
		data(one: { end(bytes: Uint8Array): void }) {
			accepted += 1;
			one.end(STARTING_UP);
		},
	};
	const closing = Bun.listen({ hostname: "127.0.0.1", port: 0, socket });
	atEnd(() => closing.stop(true));
	const statements = createStatements(
		{ clock: systemClock, log: silentLog },
		{
			url: `postgres://nobody@127.0.0.1:${closing.port}/none`,
			applicationName: "spared",
			connectionsMax: 1,
			statementDeadlineMs: 2_000,
		},
	);
	atEnd(() => statements.end());
	const untilMs = performance.now() + 1_000;
	while (performance.now() < untilMs) {
		const error = await Promise.resolve(statements`select 1`).catch((thrown) => thrown);
		expect(error).toBeInstanceOf(Error);
	}
	expect(accepted).toBeGreaterThan(0);
	// A pause is 25 ms at least.
	expect(accepted).toBeLessThan(1_000 / 25 + 2);
});

test("the client of statements has no transactions", () => {
	expect(Object.keys(db.statements)).toEqual(["end"]);
});
