import { beforeAll, describe, expect, test } from "bun:test";
import postgres from "postgres";
import { checkDatabase, type DatabaseSettings, judgeSettings } from "../../../src/cli/doctor/check-database.ts";
import { createFindings } from "../../../src/cli/doctor/finding.ts";
import { atEnd } from "../../support/at-end.ts";
import { withDatabase } from "../../support/database.ts";
import { type FakePoolerOptions, startFakePooler } from "../../support/fake-pooler.ts";
import { testPostgres, uniqueName } from "../../support/postgres.ts";
import { createManualClock } from "../../support/upstream-clock.ts";
import { expectFinding, expectWell } from "./find.ts";

const db = await withDatabase();
const config = { workers: 1 };
const check = (url = db.url, wallMs = Date.now) => checkDatabase(config, url, { wallMs });

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

describe("the doctor's check of an existing database", () => {
	test("reports version, round trip, schema, clock, and settings that may lose data", async () => {
		const findings = await check();
		// These two findings depend on the load of the machine, so the tests of `judgeSettings` below cover them.
		for (const what of [/^PostgreSQL 18.* answers in [\d.]+ ms$/, /^\d+ connections are free/])
			expect(findings.filter((finding) => what.test(finding.what))).toHaveLength(1);
		expectFinding(findings, "ok", /the schema is up to date/);
		expectFinding(findings, "ok", /clocks.* \d+ ms apart/);
		// `fsync is off` is expected, because the test server runs without it.
		expectFinding(findings, "broken", /fsync is off/);
		expectFinding(findings, "broken", /synchronous_commit is off/);
		expectFinding(findings, "warning", /full_page_writes is off/);
	});

	test("warns of a clock that differs by seconds and fails if it differs by minutes", async () => {
		for (const [offsetMs, state] of [
			[-30_000, "warning"],
			[300_000, "broken"],
		] as const) {
			const finding = expectFinding(await check(db.url, () => Date.now() + offsetMs), state, /clock/);
			expect(finding.area).toBe("clock");
		}
	});

	test("notes a missing schema, and fails if the role cannot create one", async () => {
		expectFinding(await check(emptyUrl), "note", /schema is missing or older/);
		expectFinding(await check(roleUrl), "broken", /this role may not/);
		await admin.unsafe(`alter role ${role} set default_transaction_read_only = on`);
		expectFinding(await check(roleUrl), "broken", /read-only/);
	});

	test("fails on a text encoding that lacks characters", async () => {
		const ascii = uniqueName("test");
		await admin.unsafe(`create database ${ascii} encoding 'SQL_ASCII' locale 'C' template template0`);
		try {
			expectFinding(await check((await testPostgres()).urlOf(ascii)), "broken", /encoding is SQL_ASCII/);
		} finally {
			await admin.unsafe(`drop database ${ascii} with (force)`);
		}
	});

	test("warns if the server allows fewer connections than the service may use", async () => {
		expectFinding(await checkDatabase({ workers: 1_000 }, db.url), "warning", /may use 15012$/);
	});

	test("fails on a newer, incompatible schema, and writes nothing", async () => {
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

describe("the doctor's check of a database server's settings", () => {
	const GOOD = { version: "18.1", major: 18, fsync: "on", pages: "on", ssl: true, local: false, freeConnections: 27 };
	const judged = (settings: Partial<DatabaseSettings>, tookMs = 1) => {
		const found = createFindings("database");
		judgeSettings({ ...GOOD, ...settings }, { workers: 1, tookMs }, found);
		return found.list;
	};

	test.each([
		["is old", { version: "13.9", major: 13 }, "broken", /13\.9 .*too old$/],
		["forgets", { fsync: "off" }, "broken", /^fsync is off/],
		["tears pages", { pages: "off" }, "warning", /^full_page_writes is off/],
		["is reached in clear", { ssl: false }, "warning", /not encrypted$/],
		["is full", { freeConnections: 26 }, "warning", /^26 connections are free/],
	] as const)("names the setting of a server that %s", (_, settings, state, what) => {
		expectFinding(judged(settings), state, what);
		expect(judged(settings).filter((finding) => finding.state !== "ok")).toHaveLength(1);
	});

	test("accepts safe settings and local connections, and warns of a slow connection", () => {
		expectWell([...judged({}), ...judged({ ssl: false, local: true }), ...judged({ ssl: null })]);
		expectFinding(judged({}, 10.1), "warning", /answers in 10\.1 ms$/);
	});
});

describe("the doctor's check of an unreachable database", () => {
	test("fails with reason and remedy, and does not show the password", async () => {
		const cases = [
			["postgres://me:canary@127.0.0.1:1/x", /ECONNREFUSED.*Start PostgreSQL/],
			[emptyUrl.replace(/\/\/[^@]+@/, "//me:canary@"), /authentication.*user and password/],
			[emptyUrl.replace(/\/[^/]+$/, "/nowhere"), /does not exist.*createdb/],
		] as const;
		for (const [url, what] of cases)
			expect(JSON.stringify(expectFinding(await check(url), "broken", what))).not.toContain("canary");
	});
});

describe("the doctor's check of a connection pooler", () => {
	const through = async (options: FakePoolerOptions) => {
		const pooler = startFakePooler(db.url, options);
		const findings = await check(pooler.url);
		pooler.stop();
		return findings;
	};

	test("fails in transaction mode, and queries nothing else through the pooler", async () => {
		const findings = await through({ byTransaction: true });
		expect(expectFinding(findings, "broken", /^A pooler hands sessions/).area).toBe("database");
		expect(findings.filter(({ what }) => what.includes("schema"))).toEqual([]);
	});

	test("fails within seconds if the pooler accepts connections but never answers", async () => {
		const timer = createManualClock();
		const pooler = startFakePooler(db.url, { isSilent: true });
		const looking = checkDatabase(config, pooler.url, { timer });
		timer.advance(8_000);
		expectFinding(await looking, "broken", /takes connections and does not answer.*15 connections to PostgreSQL/);
		pooler.stop();
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
