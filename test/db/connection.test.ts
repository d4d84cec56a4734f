import { expect, test } from "bun:test";
import { connect, createServer, Socket } from "node:net";
import { sql } from "drizzle-orm";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createConnector } from "../../src/db/new-client.ts";
import { isConnectionLost } from "../../src/db/outage.ts";
import { createStatements } from "../../src/db/statements.ts";
import { createTransactional } from "../../src/db/transactional.ts";
import { atEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { withDatabaseProxy } from "../support/tcp-proxy.ts";
import { waitFor } from "../support/wait.ts";

const deps = { clock: systemClock, log: silentLog };
const DEADLINE_MS = 20_000;

const server = await withDatabase();
const address = new URL(server.url);
const at = { hostname: address.hostname, port: Number(address.port) };

function statementsAt(url: string, statementDeadlineMs = DEADLINE_MS) {
	const options = { url, applicationName: "connection", connectionsMax: 1, statementDeadlineMs };
	const statements = createStatements(deps, options);
	atEnd(() => statements.end());
	return statements;
}

function transactional(more: { connectionsMax?: number } = {}) {
	const deadlines = { statementDeadlineMs: DEADLINE_MS, transactionDeadlineMs: DEADLINE_MS };
	const work = createTransactional(deps, { url: server.url, applicationName: "connection", ...deadlines, ...more });
	atEnd(() => work.end());
	return work;
}

const rejection = (work: PromiseLike<unknown>) =>
	Promise.resolve(work).then(
		() => undefined,
		(error: unknown) => error,
	);

test("the connection passes no rows of a failed statement to the next statement", async () => {
	const statements = statementsAt(server.url);
	const work = transactional();
	const pid = async () => (await statements<{ pid: number }>`select pg_backend_pid() as pid`)[0]?.pid;
	for (const rows of [1, 3, 100]) {
		expect(
			String(await rejection(statements`select 1 / (${rows}::int - at) from generate_series(0, 200) at`)),
		).toContain("division by zero");
		expect([...(await statements`select 42 as answer`)]).toEqual([{ answer: 42 }]);
		expect(
			await rejection(work.tx.execute(sql`select 1 / (${rows}::int - at) from generate_series(0, 200) at`)),
		).toBeDefined();
		expect([...(await work.tx.execute(sql`select 42 as answer`))]).toEqual([{ answer: 42 }]);
	}
	const before = await pid();
	expect(await rejection(statements`select 1 / (select 0)`)).toBeDefined();
	expect(await pid()).toBe(before as number);
});

test("the connection fails a statement in a transaction left open by SQL text", async () => {
	const work = transactional({ connectionsMax: 1 });
	const run = (text: string) => rejection(work.tx.execute(sql.raw(text)));
	expect(await run("begin; select 1 / 0; commit")).toBeDefined();
	expect(await run("select 1")).toBeDefined();
	expect(await run("select 1")).toBeUndefined();
});

test("the connection fails a statement at once after its socket failed", async () => {
	const { proxy, url } = withDatabaseProxy(server.url);
	const statements = statementsAt(url);
	await statements`select 1`;
	const asked: Promise<unknown>[] = [];
	const emit = Socket.prototype.emit;
	Socket.prototype.emit = function (this: Socket, ...event: Parameters<Socket["emit"]>) {
		const isHeard = emit.apply(this, event);
		if (event[0] === "error" && this.remotePort !== at.port) asked.push(rejection(statements`select 1`));
		return isHeard;
	} as typeof emit;
	try {
		proxy.reset();
		await waitFor(() => asked.length > 0, "the socket's error");
	} finally {
		Socket.prototype.emit = emit;
	}
	const startedMs = performance.now();
	expect(await Promise.all(asked)).toEqual([undefined]);
	expect(performance.now() - startedMs).toBeLessThan(DEADLINE_MS / 2);
});

test("a database client fails all queries once its connection has ended", async () => {
	const closed = Promise.withResolvers<void>();
	const opened = createConnector(server.url)({ onclose: () => closed.resolve() });
	atEnd(() => opened.end({ timeout: 0 }));
	const client = await opened.ready;
	const [session] = await client<{ pid: number }[]>`select pg_backend_pid() as pid, pg_advisory_lock(17)`;
	await server.sql`select pg_terminate_backend(${session?.pid as number})`;
	await closed.promise;
	for (let time = 0; time < 2; time++) expect(isConnectionLost(await rejection(client`select 1`))).toBe(true);
});

test.each(["its deadline", "the client's end"])("the server cancels a running statement at %s", async (moment) => {
	const isRunning = async () =>
		(await server.sql`select 1 from pg_stat_activity where query = 'select pg_sleep(25)' and state = 'active'`)
			.length === 1;
	const statements = statementsAt(server.url, moment === "its deadline" ? 500 : DEADLINE_MS);
	const slept = rejection(statements`select pg_sleep(25)`);
	await waitFor(isRunning, "the statement to run");
	if (moment !== "its deadline") await statements.end();
	await slept;
	await waitFor(async () => !(await isRunning()), "the statement to end", 5_000);
});

test("the connection closes when it is discarded, even if the server does not answer", async () => {
	const taken: Socket[] = [];
	let isSilent = false;
	const relay = createServer({ allowHalfOpen: true }, (from) => {
		taken.push(from);
		const to = connect(at.port, at.hostname);
		from.on("data", (bytes) => isSilent || to.write(bytes)).on("error", () => {});
		to.on("data", (bytes) => from.write(bytes)).on("error", () => {});
		atEnd(() => {
			from.destroy();
			to.destroy();
		});
	});
	const port = await new Promise<number>((resolve) =>
		relay.listen(0, "127.0.0.1", () => resolve((relay.address() as { port: number }).port)),
	);
	atEnd(() => void relay.close());
	const statements = statementsAt(Object.assign(address, { port: String(port) }).href, 1_000);
	await statements`select 1`;
	isSilent = true;
	expect(await rejection(statements`select 1`)).toBeDefined();
	// Writing to a socket still succeeds after the server has closed its side.
	const refused = Promise.withResolvers<void>();
	taken[0]?.on("error", () => refused.resolve()).on("close", () => refused.resolve());
	const writing = setInterval(() => taken[0]?.write(Buffer.from("N\0\0\0\x05\0")), 50);
	atEnd(() => clearInterval(writing));
	await refused.promise;
	clearInterval(writing);
});
