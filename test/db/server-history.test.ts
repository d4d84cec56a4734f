import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createPgHeartbeatStore } from "../../src/cluster/heartbeat.ts";
import { createDatabase } from "../../src/db/database.ts";
import { identityProblem, readDurability } from "../../src/db/durability.ts";
import { FUNCTION_SET } from "../../src/db/function-set.ts";
import { createServerHistory } from "../../src/db/server-history.ts";
import { addUrlSetting } from "../../src/db/session-settings.ts";
import { keyLoader } from "../../src/keys/keyring.ts";
import type { KeyDigest } from "../../src/keys/secret.ts";
import { appendControl } from "../cluster/fixture.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { uniqueName } from "../support/postgres.ts";

const db = await withDatabase();
const log = silentLog;
type History = ReturnType<typeof createServerHistory>;
const observe = (history: History, answer: string) => history.look()(answer);

test.each([
	["a later position", "7/00000001 9", false],
	["the same position", "7/00000001 5", false],
	["an earlier position", "7/00000001 4", true],
	["a higher timeline", "7/00000002 9", true],
	["another system", "8/00000001 9", true],
	["a system that cannot be read any more", "?/00000001 9", true],
	["another start of a server of which nothing else can be read", "?/@2 0", true],
])("the server history decides whether %s belongs to another server (case %#)", (_, answer, isAnother) => {
	const history = createServerHistory({ log });
	observe(history, answer.includes("@") ? "?/@1 0" : "7/00000001 5");
	const before = history.label();
	let moves = 0;
	history.onMove(() => {
		moves += 1;
	});
	observe(history, answer);
	expect([history.label() !== before, moves]).toEqual([isAnother, isAnother ? 1 : 0]);
});

test.each([
	["key", (history: History) => keyLoader(db.statements, history)("unknown" as KeyDigest)],
	["control entry", (history: History) => createPgHeartbeatStore(db.statements, history).readAfter(0)],
])("the server history notices by a missing %s that a server went back in time", async (_, read) => {
	await appendControl(db.statements, "key", "some key", {});
	const history = createServerHistory({ log });
	await read(history);
	observe(history, `${history.label()} 0`);
	expect(history.setbacks()).toBe(1);
});

test("the server history accepts answers that arrive out of order", () => {
	const history = createServerHistory({ log });
	observe(history, "7/00000001 5");
	const [early, late] = [history.look(), history.look()];
	late("7/00000001 9");
	early("7/00000001 6");
	expect(history.setbacks()).toBe(0);
	observe(history, "7/00000001 8");
	expect(history.setbacks()).toBe(1);
});

test("the server history notices a second server that answers at the same time", () => {
	const history = createServerHistory({ log });
	const [one, other] = [history.look(), history.look()];
	one("7/00000001 5");
	other("7/00000002 9");
	expect([history.label(), other("7/00000001 9")]).toEqual(["7/00000002", false]);
});

test("the server history ignores an answer to a query from before the server changed", () => {
	const history = createServerHistory({ log });
	observe(history, "7/00000001 5");
	const old = history.look();
	observe(history, "7/00000002 3");
	expect(old("7/00000001 6")).toBe(false);
	expect(history.label()).toBe("7/00000002");
});

test("the server history refuses a server with a lower timeline, even after a restart", () => {
	const dataDir = temporaryFolder();
	observe(createServerHistory({ log }, dataDir), "7/0000000B 5");
	const next = createServerHistory({ log }, dataDir);
	expect(() => observe(next, "7/0000000A 9")).toThrow("its timeline is 10, and 11 has been seen");
	observe(next, "8/00000001 9");
	expect(() => observe(next, "7/0000000A 9")).toThrow("superseded");
	rmSync(join(dataDir, "database-timelines.json"));
	observe(createServerHistory({ log }, dataDir), "7/0000000A 9");
});

test("the server history refuses a standby server", () => {
	expect(() => observe(createServerHistory({ log }), "7/- 0")).toThrow("standby");
});

test("a service's start names what a role without rights cannot read", async () => {
	const owner = await withDatabase();
	const role = uniqueName("history");
	await owner.sql.unsafe(`create role ${role}; grant usage on schema ${FUNCTION_SET} to ${role}`);
	const url = addUrlSetting(owner.url, "role", role);
	const db = createDatabase({ clock: systemClock, log }, { url, applicationName: "test" });
	atEnd(async () => {
		await db.end();
		await owner.sql.unsafe(`drop owned by ${role}; drop role ${role}`);
	});
	const place = async () => String((await db.liveness<{ place: string }>`select server_place() as place`)[0]?.place);
	const problem = async () => identityProblem(await readDurability(db.statements)) ?? "nothing";
	expect(await place()).toMatch(/^\d+\/00000001 \d+$/);
	expect(await problem()).toBe("nothing");
	await owner.sql`revoke execute on function pg_control_system() from public`;
	expect(await place()).toMatch(/^\?\/00000001 [1-9]\d*$/);
	expect(await problem()).toContain("pg_control_system()");
	await owner.sql`revoke execute on function pg_current_wal_flush_lsn() from public`;
	expect(await place()).toMatch(/^\?\/@\d+ 0$/);
	expect(await problem()).toContain("every restart");
});
