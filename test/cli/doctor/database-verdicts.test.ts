/** What a database may say of itself that the tests' own never does. */
import { expect, test } from "bun:test";
import type { DatabaseServer, DatabaseSettings } from "../../../src/cli/doctor/database-verdicts.ts";
import {
	judgeLost,
	judgeRoundTrip,
	judgeServer,
	judgeSessions,
	judgeSettings,
} from "../../../src/cli/doctor/database-verdicts.ts";
import type { Finding } from "../../../src/cli/doctor/finding.ts";
import { findingsOf } from "../../../src/cli/doctor/finding.ts";
import { expectFinding } from "./find.ts";

type Found = ReturnType<typeof findingsOf>;

function judged(judge: (found: Found) => void): readonly Finding[] {
	const found = findingsOf("database");
	judge(found);
	return found.list;
}

const SERVER: DatabaseServer = { version: "18.1", number: "180001", encoding: "UTF8", ssl: true, local: false };
const SETTINGS: DatabaseSettings = {
	fsync: "on",
	pages: "on",
	readonly: "off",
	standby: false,
	durability: { commit: "on", waitedFor: "", standbys: 0 },
};

for (const [what, server, state, finding] of [
	["the version of the tests", {}, "ok", /^PostgreSQL 18\.1 is there$/],
	["an older one", { version: "14.0", number: "140000" }, "note", /^PostgreSQL 14\.0 is there; the tests run on 18$/],
	["one that is too old", { version: "13.9", number: "130009" }, "broken", /^PostgreSQL 13\.9 is too old$/],
	["another encoding", { encoding: "LATIN1" }, "broken", /encoding is LATIN1$/],
	["a network in clear", { ssl: false }, "warning", /is not encrypted$/],
] as const)
	test(`of a server: ${what}`, () => {
		expectFinding(
			judged((found) => judgeServer({ ...SERVER, ...server }, found)),
			state,
			finding,
		);
	});

test("this machine in clear, and a socket, are no network", () => {
	for (const way of [{ ssl: false, local: true }, { ssl: null }] as const)
		expect(judged((found) => judgeServer({ ...SERVER, ...way }, found)).map(({ state }) => state)).toEqual(["ok"]);
});

for (const [tookMs, journal, state, todo] of [
	[10, "remote", "ok", undefined],
	[10.1, "remote", "warning", /every answer waits for two commits/],
	[10.1, "host", "warning", /new keys, drawn credit and the console/],
] as const)
	test(`an answer in ${tookMs} ms with JOURNAL=${journal}: ${state}`, () => {
		const findings = judged((found) => judgeRoundTrip(tookMs, { journal }, found));
		const finding = expectFinding(findings, state, /^it answers in 10\.[01] ms$/);
		if (todo !== undefined) expect(finding.todo).toMatch(todo);
	});

const STANDBYS = { commit: "on", waitedFor: "", standbys: 2 };
for (const [what, settings, state, finding] of [
	["all is well", {}, "ok", /on its disk \(synchronous_commit = on\)$/],
	["a standby", { standby: true, readonly: "on" }, "broken", /^this server is a standby/],
	["no writes", { readonly: "on" }, "broken", /^transactions are read-only/],
	["no fsync", { fsync: "off" }, "broken", /^fsync is off/],
	["torn pages", { pages: "off" }, "warning", /^full_page_writes is off/],
	["no commit", { durability: { ...STANDBYS, commit: "off" } }, "broken", /^synchronous_commit is off/],
	["standbys that nobody waits for", { durability: STANDBYS }, "warning", /synchronous_standby_names is empty/],
	[
		"a commit that waits for none",
		{ durability: { commit: "local", waitedFor: "*", standbys: 1 } },
		"warning",
		/^synchronous_commit is local/,
	],
] as const)
	test(`of its settings: ${what}, and nothing else`, () => {
		const findings = judged((found) => judgeSettings({ ...SETTINGS, ...settings }, found));
		expectFinding(findings, state, finding);
		expect(findings).toHaveLength(1);
	});

test("a pooler by transactions is broken, a session of one's own is well", () => {
	expectFinding(
		judged((found) => judgeSessions(true, found)),
		"broken",
		/^a pooler hands sessions/,
	);
	expectFinding(
		judged((found) => judgeSessions(false, found)),
		"ok",
		/^a session is ours/,
	);
});

test("settings that a pooler overlooks are a warning that names them; none is none", () => {
	expectFinding(
		judged((found) => judgeLost(["lock_timeout", "statement_timeout"], found)),
		"warning",
		/lock_timeout, statement_timeout$/,
	);
	expect(judged((found) => judgeLost([], found))).toEqual([]);
});
