import { beforeAll, describe, expect, test } from "bun:test";
import postgres from "postgres";
import { checkDatabase } from "../../../src/cli/doctor/check-database.ts";
import { loadConfig } from "../../../src/config.ts";
import { isPooledByTransaction, type Session } from "../../../src/db/pooler.ts";
import { atEnd, temporaryFolder } from "../../support/at-end.ts";
import { withDatabase } from "../../support/database.ts";
import { type FakePoolerOptions, startFakePooler } from "../../support/fake-pooler.ts";
import { testPostgres, uniqueName } from "../../support/postgres.ts";
import { createManualClock } from "../../support/upstream-clock.ts";
import { expectFinding } from "./find.ts";

const db = await withDatabase();
const folder = temporaryFolder();
const config = (env: Record<string, string> = {}) => loadConfig({ DATABASE_URL: db.url, ...env }, folder);
const check = (url = db.url, wallMs = Date.now) => checkDatabase(config(), url, { wallMs });

/** A database of its own name, without a schema. */
const empty = uniqueName("test");
const role = uniqueName("test_role");
let emptyUrl: string;
let roleUrl: string;
let admin: postgres.Sql;

beforeAll(async () => {
	const server = await testPostgres();
	admin = postgres(server.adminUrl, { max: 1, onnotice: () => {} });
	await admin.unsafe(`create database ${empty}`);
	await admin.unsafe(`create role ${role} login password 'wrong on purpose'`);
	emptyUrl = server.urlOf(empty);
	roleUrl = emptyUrl.replace(/\/\/[^@]+@/, `//${role}:${encodeURIComponent("wrong on purpose")}@`);
	atEnd(async () => {
		await admin.unsafe(`drop database ${empty} with (force)`);
		await admin.unsafe(`drop role ${role}`);
		await admin.end();
	});
});

describe("a database that is there", () => {
	test("is described: version, round trip, sessions, schema, clock; and settings that lose the books", async () => {
		const findings = await check();
		expectFinding(findings, "ok", /^PostgreSQL 18/);
		expectFinding(findings, "ok", /answers in [\d.]+ ms/);
		expectFinding(findings, "ok", /connections are free/);
		expectFinding(findings, "ok", /a session is ours/);
		expectFinding(findings, "ok", /the schema is this version's/);
		expectFinding(findings, "ok", /clock.* \d+ ms apart/);
		// The tests' own server is fast and forgets.
		expectFinding(findings, "broken", /fsync is off/);
		expectFinding(findings, "broken", /synchronous_commit is off/);
		expectFinding(findings, "warning", /full_page_writes is off/);
	});

	test("settlements that came too late to be charged are a warning, none are not", async () => {
		expect((await check()).filter(({ what }) => what.includes("not charged"))).toEqual([]);
		await db.sql`insert into refused_settlement (instance_id, epoch, requests, charged_nano_usd) values ('away', 1, 12, 5), ('away', 2, 30, 5)`;
		try {
			expectFinding(await check(), "warning", /^42 settlements came after .* not charged \(from away\)$/);
		} finally {
			await db.sql`delete from refused_settlement`;
		}
	});

	test("a clock that is off by seconds is a warning, by minutes it is broken", async () => {
		for (const [offsetMs, state] of [
			[-30_000, "warning"],
			[300_000, "broken"],
		] as const) {
			const finding = expectFinding(await check(db.url, () => Date.now() + offsetMs), state, /clock/);
			expect(finding.area).toBe("clock");
		}
	});

	test("without a schema it is made by the next start, unless this role may not, or may not write at all", async () => {
		expectFinding(await check(emptyUrl), "note", /schema is not there yet/);
		expectFinding(await check(roleUrl), "broken", /this role may not/);
		await admin.unsafe(`alter role ${role} set default_transaction_read_only = on`);
		expectFinding(await check(roleUrl), "broken", /read-only/);
	});

	test("of an encoding that has no place for every character it is broken", async () => {
		const ascii = uniqueName("test");
		await admin.unsafe(`create database ${ascii} encoding 'SQL_ASCII' locale 'C' template template0`);
		try {
			const server = await testPostgres();
			const { todo } = expectFinding(await check(server.urlOf(ascii)), "broken", /encoding is SQL_ASCII/);
			expect(todo).toContain("UTF8");
		} finally {
			await admin.unsafe(`drop database ${ascii} with (force)`);
		}
	});

	test("with fewer connections than this instance may hold it is a warning", async () => {
		expectFinding(await checkDatabase({ ...config(), workers: 1_000 }, db.url), "warning", /may hold 12012$/);
	});

	test("with a schema of a newer version that breaks this one it is broken; nothing is changed by looking", async () => {
		const other = await withTemplate();
		await other.sql`insert into schema_migration (name, breaking) values ('9999_from_the_future', true)`;
		expectFinding(await check(other.url), "broken", /9999_from_the_future/);
		const [tables] = await postgresAt(
			emptyUrl,
			(sql) => sql`select count(*)::int as n from pg_tables where schemaname = 'public'`,
		);
		expect(tables).toEqual({ n: 0 });
	});
});

describe("a database that cannot be used", () => {
	test("is broken, with the reason and what to do, and without the password", async () => {
		const at = (url: string) => checkDatabase(config(), url);
		const cases = [
			["postgres://me:canary@127.0.0.1:1/x", /ECONNREFUSED/, /Start PostgreSQL/],
			[emptyUrl.replace(/\/\/[^@]+@/, "//me:canary@"), /authentication/, /user and password/],
			[emptyUrl.replace(/\/[^/]+$/, "/nowhere"), /does not exist/, /createdb/],
		] as const;
		for (const [url, what, todo] of cases) {
			const finding = expectFinding(await at(url), "broken", what);
			expect(finding.todo).toMatch(todo);
			expect(JSON.stringify(finding)).not.toContain("canary");
		}
	});
});

describe("a pooler", () => {
	/** Sessions of clients that a pooler serves with `size` sessions of the server: the one used last, or the one used first. */
	function pooled(size: number, order: "last" | "first"): { session: Session; end(): Promise<void> } {
		const free = Array.from({ length: size }, () => postgres(db.url, { max: 1, onnotice: () => {} }));
		return {
			async session(statement) {
				const backend = (order === "last" ? free.pop() : free.shift()) as postgres.Sql;
				try {
					return [...(await backend.unsafe(statement))];
				} finally {
					free.push(backend);
				}
			},
			end: async () => void (await Promise.all(free.map((backend) => backend.end()))),
		};
	}

	test("that works by transactions is found out, however many sessions it has and whichever it gives", async () => {
		for (const size of [1, 2, 3, 8]) {
			for (const order of ["last", "first"] as const) {
				const { session, end } = pooled(size, order);
				expect({ size, order, pooled: await isPooledByTransaction(session, session) }).toEqual({
					size,
					order,
					pooled: true,
				});
				await end();
			}
		}
	});

	const through = async (options: FakePoolerOptions) => {
		const pooler = startFakePooler(db.url, options);
		const findings = await check(pooler.url);
		pooler.stop();
		return findings;
	};

	test("by transactions is broken, and nothing else is asked through it", async () => {
		const findings = await through({ byTransaction: true });
		expectFinding(findings, "broken", /^a pooler hands sessions/);
		expect(findings.filter(({ what }) => what.includes("schema"))).toEqual([]);
	});

	test("that refuses or overlooks what connections begin with is broken, and it is said what has to be passed on", async () => {
		for (const [options, what] of [
			[{ refuses: "statement_timeout" }, /unsupported startup parameter: statement_timeout$/],
			[{ refuses: "search_path" }, /unsupported startup parameter: search_path/],
			[{ overlooks: ["search_path"] }, /loses its search_path/],
		] as const) {
			const { todo } = expectFinding(await through(options), "broken", what);
			expect(todo).toMatch(
				/^Connect to PostgreSQL itself, or have the pooler pass on .*: search_path, statement_timeout, /,
			);
		}
		expectFinding(
			await through({ overlooks: ["lock_timeout"] }),
			"warning",
			/lose settings on their way: lock_timeout$/,
		);
	});

	test("that takes connections and answers nobody is broken, soon, and not for its address", async () => {
		const timer = createManualClock();
		const pooler = startFakePooler(db.url, { isSilent: true });
		const looking = checkDatabase(config(), pooler.url, { timer });
		timer.advance(8_000);
		const { todo } = expectFinding(await looking, "broken", /takes connections and does not answer/);
		expect(todo).toMatch(/12 connections to PostgreSQL/);
		pooler.stop();
	});

	test("none is seen where a session is its client's own", async () => {
		const [a, b] = [pooled(1, "last"), pooled(1, "last")];
		expect(await isPooledByTransaction(a.session, b.session)).toBe(false);
		await Promise.all([a.end(), b.end()]);
	});
});

async function withTemplate() {
	const { createTestDatabase } = await import("../../support/database.ts");
	const made = await createTestDatabase();
	atEnd(() => made.drop());
	return made;
}

async function postgresAt<Row>(url: string, work: (sql: postgres.Sql) => Promise<Row>): Promise<Row> {
	const sql = postgres(url, { max: 1, onnotice: () => {} });
	try {
		return await work(sql);
	} finally {
		await sql.end();
	}
}
