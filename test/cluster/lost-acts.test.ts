/** Tests that an instance redoes or reports changes that a new database server lacks after a failover. */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import { readControlAfter } from "../../src/cluster/control-log.ts";
import { openKeptEntries } from "../../src/cluster/kept-entries.ts";
import { lostActsProblem, readLostActs } from "../../src/cluster/lost-acts.ts";
import { createAccount, suspendAccount } from "../../src/keys/account-admin.ts";
import { createKey, revokeKey, updateKey } from "../../src/keys/key-admin.ts";
import { archiveProject, createProject, updateProject } from "../../src/keys/project-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";

const db = await withDatabase();
const { sql, statements } = db;
const maker = { statements, digest: createDigest("p".repeat(64)), serviceName: "service" };
const folder = temporaryFolder();

let paths = 0;
function openKept(path = join(folder, "control", `${paths++}.jsonl`), clock = systemClock) {
	const lines: { message: string; subject: string }[] = [];
	const log = createLog({ level: "error", write: (line) => void lines.push(JSON.parse(line)) });
	return { path, lines, kept: openKeptEntries({ statements, clock, log }, path) };
}

const usd = (amount: number) => nanoUsd(amount * 1e9);
const account = async () =>
	(await createAccount(statements, { email: `${crypto.randomUUID()}@example.com`, vouched: true })).id;
const key = async () =>
	(
		await createKey(maker, await account(), {
			...{ name: "k", capNanoUsd: usd(9), requestsPerMinute: 90, concurrencyMax: 9 },
			...{ models: ["a", "b"], expiresAtMs: 4e12 },
		})
	).id;
const project = async () => (await createProject(statements, await account(), { name: "p", capNanoUsd: usd(9) })).id;
const TABLES = ["account", "api_key", "project", "budget", "ledger_entry"] as const;

/** Makes a change that an instance applies, then fails over to a standby that lacks the change. */
async function lose(act: (id: string) => Promise<unknown>, id: string, instance = openKept()) {
	const [row] = await sql`select coalesce(max(seq), 0) as seq from control_log`;
	await sql.unsafe(
		`create schema before; ${TABLES.map((name) => `create table before.${name} as table public.${name};`).join("")}`,
	);
	await act(id);
	const entries = await readControlAfter(statements, Number(row?.seq));
	for (const entry of entries) instance.kept.add(entry);
	await sql.begin(async (standby) => {
		await standby.unsafe("set local session_replication_role = replica");
		for (const name of TABLES)
			await standby.unsafe(`delete from public.${name}; insert into public.${name} select * from before.${name}`);
		await standby`delete from control_log where seq > ${row?.seq}`;
		await standby.unsafe("drop schema before cascade");
	});
	return instance;
}

const keyRow = async (id: string) => (await sql`select key_fields(k) as f from api_key k where id = ${id}`)[0]?.f;
const projectRow = async (id: string) =>
	(await sql`select project_fields(p) as f from project p where id = ${id}`)[0]?.f;
const acts = async (subject: string) =>
	(await sql`select outcome from lost_act where subject = ${subject}`).map(({ outcome }) => outcome);
const update = (settings: Parameters<typeof updateKey>[2]) => (id: string) => updateKey(statements, { id }, settings);

test.each([
	["a revocation", (id: string) => revokeKey(statements, { id }), { state: "revoked" }],
	["a lower cap", update({ capNanoUsd: usd(1) }), { capNanoUsd: 1e9 }],
	["fewer models", update({ models: ["a"] }), { models: ["a"] }],
	["fewer requests a minute", update({ requestsPerMinute: 5 }), { requestsPerMinute: 5 }],
	["fewer requests at once", update({ concurrencyMax: 2 }), { concurrencyMax: 2 }],
	["an earlier expiry", update({ expiresAtMs: 2e12 }), { expiresAtMs: 2e12 }],
] as const)("an instance redoes %s of a key that the server lacks", async (_, act, expected) => {
	const id = await key();
	const { kept, lines } = await lose(act, id);
	const before = await keyRow(id);
	await kept.reconcile();
	const after = await keyRow(id);
	expect(after).toMatchObject(expected);
	expect(after).not.toEqual(before);
	expect(await acts(id)).toEqual(["redone"]);
	expect(lines).toMatchObject([{ message: "the database had lost an act, which was redone", subject: id }]);
});

test("an instance redoes a suspension, archival or lowered limit that a failover lost", async () => {
	const owner = await account();
	const suspended = await lose((id) => suspendAccount(statements, id), owner);
	await suspended.kept.reconcile();
	expect((await sql`select state from account where id = ${owner}`)[0]?.state).toBe("suspended");
	const limited = await project();
	await (await lose((id) => updateProject(statements, { id }, { capNanoUsd: usd(2) }), limited)).kept.reconcile();
	expect(await projectRow(limited)).toMatchObject({ capNanoUsd: 2e9 });
	await (await lose((id) => archiveProject(statements, { id }), limited)).kept.reconcile();
	expect(await projectRow(limited)).toMatchObject({ state: "archived" });
	expect([await acts(owner), await acts(limited)]).toEqual([["redone"], ["redone", "redone"]]);
});

test("an instance only reports a top-up, key or raised cap that a failover lost", async () => {
	const id = await key();
	const { kept, lines } = await lose(update({ capNanoUsd: usd(99) }), id);
	await kept.reconcile();
	expect(await keyRow(id)).toMatchObject({ capNanoUsd: 9e9 });
	const owner = await account();
	let made = "";
	const created = await lose(async () => {
		made = (await createKey(maker, owner, { name: "new" })).id;
	}, owner);
	await created.kept.reconcile();
	const topUp = () =>
		sql`select ledger_book(${crypto.randomUUID()}, ${owner}, 'top_up', 5, ${crypto.randomUUID()}, 'test', '', false)`;
	await (await lose(topUp, owner)).kept.reconcile();
	expect([await acts(id), await acts(made), await acts(owner)]).toEqual([["lost"], ["lost"], ["lost"]]);
	expect(lines).toMatchObject([{ message: "the database lost an act: repeat it", subject: id }]);
	const named = lostActsProblem(await readLostActs(statements)) ?? "nothing";
	expect(named).toContain(`budget ${owner}, key ${made}, key ${id}`);
	expect(lostActsProblem([{ kind: "key", subject: id, outcome: "redone", atMs: 0 }])).toBe(undefined);
});

test("an instance with a wrong clock does not report a booking as lost that exists", async () => {
	const owner = await account();
	await sql`select ledger_book(${crypto.randomUUID()}, ${owner}, 'top_up', 5, ${crypto.randomUUID()}, 'test', '', false)`;
	// Dates the entry an hour ago by the database's clock, which is ahead of the instance's.
	await sql`update control_log set at = at - interval '61 minutes' where subject = ${owner}`;
	const { kept } = openKept(undefined, { ...systemClock, wallMs: () => Date.now() - 120_000 });
	for (const entry of await readControlAfter(statements, 0)) if (entry.subject === owner) kept.add(entry);
	await kept.reconcile();
	expect(await acts(owner)).toEqual([]);
});

test("an instance redoes a lost revocation and keeps changes made after the failover", async () => {
	const [capped, revoked, owner] = [await key(), await key(), await account()];
	const one = await lose(update({ capNanoUsd: usd(1) }), capped);
	const two = await lose((id) => revokeKey(statements, { id }), revoked);
	const three = await lose((id) => suspendAccount(statements, id), owner);
	// Appends an entry as a webhook does that confirms a top-up before an instance has joined.
	await sql`select control_append('account', id, account_fields(a)) from account a where id = ${owner}`;
	await updateKey(statements, { id: capped }, { capNanoUsd: usd(50) });
	await updateKey(statements, { id: revoked }, { capNanoUsd: usd(50) });
	await one.kept.reconcile();
	await two.kept.reconcile();
	await three.kept.reconcile();
	expect([await acts(capped), await acts(revoked), await acts(owner)]).toEqual([["lost"], ["redone"], ["lost"]]);
	expect(await keyRow(capped)).toMatchObject({ capNanoUsd: 50e9 });
	expect(await keyRow(revoked)).toMatchObject({ state: "revoked" });
});

test("two instances redo and record a change lost in a failover only once", async () => {
	const id = await key();
	const one = await lose((of) => revokeKey(statements, { id: of }), id);
	const entries = readFileSync(one.path, "utf8");
	const other = openKept();
	writeFileSync(one.path.replace(/\d+(?=\.jsonl)/, "copy"), `${entries}{"torn`);
	const two = openKept(one.path.replace(/\d+(?=\.jsonl)/, "copy"));
	await Promise.all([one.kept.reconcile(), two.kept.reconcile(), other.kept.reconcile()]);
	expect(await acts(id)).toEqual(["redone"]);
	expect([...one.lines, ...two.lines, ...other.lines].length).toBe(1);
	const raised = await key();
	const three = await lose(update({ capNanoUsd: usd(99) }), raised);
	const four = openKept(three.path);
	await three.kept.reconcile();
	await four.kept.reconcile();
	expect([three.lines.length, four.lines.length]).toEqual([1, 0]);
	// The next process reads the kept entries from disk and finds none missing.
	const next = openKept(one.path);
	await next.kept.reconcile();
	expect(next.lines).toEqual([]);
});
