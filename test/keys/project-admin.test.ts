/** Tests of changes of projects: the rows in the database and the control entries for running instances. */
import { describe, expect, test } from "bun:test";
import { newId } from "../../src/base/id.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { createKey, getKey, listKeys, revokeKey, rotateKey, updateKey } from "../../src/keys/key-admin.ts";
import type { ProjectFields } from "../../src/keys/key-entry.ts";
import { keyLoader } from "../../src/keys/keyring.ts";
import {
	archiveProject,
	createProject,
	getProject,
	listProjects,
	updateProject,
} from "../../src/keys/project-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { usd } from "../ledger/fixture.ts";
import { codeOf } from "../support/code-of.ts";
import { withDatabase } from "../support/database.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { waitFor } from "../support/wait.ts";

const { sql, statements } = await withDatabase();
const digest = createDigest("pepper");
const maker = { statements, digest, serviceName: "service" };
const newAccount = async () =>
	(await createAccount(statements, { email: `${newId("acc")}@example.com`, vouched: true })).id;
const lastEntry = async (subject: string, kind: string) =>
	(
		await sql`select seq, payload from control_log where subject = ${subject} and kind = ${kind} order by seq desc limit 1`
	)[0];
const budgetOf = async (id: string) =>
	(await sql`select kind, account_id, limit_nano_usd::float as cap from budget where id = ${id}`)[0];

test("an account has at most 1,000 projects even if calls are concurrent", async () => {
	const account = await newAccount();
	await sql`insert into project (id, account_id, name)
		select 'proj_' || ${account} || n, ${account}, 'p' from generate_series(1, 999) n`;
	let late: Promise<string> | undefined;
	await sql.begin(async (last) => {
		await last`select project_create(${newId("proj")}, ${account}, '{"name":"last"}')`;
		let answered = false;
		late = codeOf(createProject(statements, account, { name: "one more" })).finally(() => {
			answered = true;
		});
		await waitFor(async () => answered || (await lockWaits(sql)) > 0, "it to wait");
	});
	expect(await late).toBe("conflict");
});

describe("a project", () => {
	const settings = {
		name: "search",
		capNanoUsd: usd(5_000),
		capPeriod: "month",
		models: ["a", "b/c"],
		requestsPerMinute: 60,
		concurrencyMax: 4,
		tokensPerMinute: 90_000,
	} as const;
	const fields: ProjectFields = { ...settings, state: "active" };

	test("is loaded with its keys and all its settings", async () => {
		const account = await newAccount();
		const { id } = await createProject(statements, account, settings);
		const { secret, id: key } = await createKey(maker, account, { name: "k", projectId: id });
		expect(await keyLoader(statements)(digest(secret))).toMatchObject({ key: { projectId: id }, project: fields });
		expect(await budgetOf(id)).toEqual({ kind: "project", account_id: account, cap: null });
		expect((await lastEntry(key, "key"))?.payload).toMatchObject({ projectId: id });
		expect(await getProject(statements, { id, accountId: account })).toMatchObject({ ...settings, keys: 1 });
		expect(await getKey(statements, { id: key })).toMatchObject({ projectId: id, projectName: "search" });
	});

	test("is created once by two creations with one id", async () => {
		const account = await newAccount();
		const id = newId("proj");
		for (const name of ["one", "two"]) await createProject(statements, account, { name, capNanoUsd: usd(7) }, id);
		expect((await listProjects(statements, account)).items.map(({ name }) => name)).toEqual(["one"]);
		expect(await budgetOf(id)).toMatchObject({ cap: 7 });
		const accountId = await newAccount();
		expect(await codeOf(getProject(statements, { id, accountId }))).toBe("not_found");
		expect(await codeOf(updateProject(statements, { id, accountId }, { name: "x" }))).toBe("not_found");
		expect(await codeOf(archiveProject(statements, { id, accountId }))).toBe("not_found");
		expect(await codeOf(createKey(maker, accountId, { name: "k", projectId: id }))).toBe("not_found");
		const { id: key } = await createKey(maker, accountId, { name: "k" });
		expect(await codeOf(updateKey(statements, { id: key }, { projectId: id }))).toBe("not_found");
		expect(await getKey(statements, { id: key })).toMatchObject({ projectId: null });
		expect(await codeOf(createProject(statements, "acc_none", { name: "x" }))).toBe("not_found");
	});

	test("changes only the given fields and writes one control entry", async () => {
		const account = await newAccount();
		const { id } = await createProject(statements, account, settings);
		const changes = {
			name: "n",
			capNanoUsd: usd(1),
			capPeriod: "lifetime",
			models: ["z"],
			requestsPerMinute: 1,
		} as const;
		let known: ProjectFields = fields;
		for (const [field, value] of Object.entries({ ...changes, concurrencyMax: 1 })) {
			const { seq } = await updateProject(statements, { id }, { [field]: value });
			known = { ...known, [field]: value };
			const entry = await lastEntry(id, "project");
			expect(entry?.payload).toEqual({ ...known });
			expect(seq).toBeGreaterThanOrEqual(Number(entry?.seq));
		}
		await updateProject(statements, { id }, { models: null, requestsPerMinute: null, concurrencyMax: null });
		expect((await lastEntry(id, "project"))?.payload).toMatchObject({ models: null, requestsPerMinute: null });
		for (const wrong of [{ name: "" }, { requestsPerMinute: 0 }, { models: [""] }])
			expect(await codeOf(updateProject(statements, { id }, wrong))).toBe("invalid_request");
	});

	test("sends its lowered cap to instances", async () => {
		const account = await newAccount();
		const { id } = await createProject(statements, account, { name: "p", capNanoUsd: usd(10) });
		await updateProject(statements, { id }, { capNanoUsd: usd(4) });
		expect(await budgetOf(id)).toMatchObject({ cap: 4 });
		expect((await lastEntry(id, "budget"))?.payload).toEqual({ lowered: true });
	});

	test("is changed only if its entity tag matches", async () => {
		const { id } = await createProject(statements, await newAccount(), { name: "p" });
		const { etag } = await getProject(statements, { id });
		await updateProject(statements, { id }, { name: "q" }, [etag]);
		expect(await codeOf(updateProject(statements, { id }, { name: "r" }, [etag]))).toBe("precondition_failed");
		expect((await getProject(statements, { id })).name).toBe("q");
	});

	test("refuses requests of its keys once archived, and can be archived again", async () => {
		const account = await newAccount();
		const { id } = await createProject(statements, account, { name: "p" });
		const { id: key } = await createKey(maker, account, { name: "k" });
		const first = await archiveProject(statements, { id });
		expect((await lastEntry(id, "project"))?.payload).toMatchObject({ state: "archived" });
		const { archivedAtMs } = await getProject(statements, { id });
		const second = await archiveProject(statements, { id });
		expect(second.seq).toBeGreaterThan(first.seq);
		expect(await getProject(statements, { id })).toMatchObject({ state: "archived", archivedAtMs });
		expect(await codeOf(updateProject(statements, { id }, { name: "x" }))).toBe("conflict");
		expect(await codeOf(createKey(maker, account, { name: "k", projectId: id }))).toBe("conflict");
		expect(await codeOf(updateKey(statements, { id: key }, { projectId: id }))).toBe("conflict");
	});

	test("refuses a new key during its archiving", async () => {
		const account = await newAccount();
		const { id } = await createProject(statements, account, { name: "p" });
		let made: Promise<unknown> = Promise.resolve();
		await sql.begin(async (transaction) => {
			await transaction`select project_update(${id}, null, '{"state":"archived"}', null)`;
			made = codeOf(createKey(maker, account, { name: "k", projectId: id }));
			await Promise.race([made, Bun.sleep(100)]);
		});
		expect(await made).toBe("conflict");
		expect((await listKeys(statements, account)).items).toEqual([]);
	});
});

test("gets a moved key with a control entry that names the project", async () => {
	const account = await newAccount();
	const [one, two] = await Promise.all(["one", "two"].map((name) => createProject(statements, account, { name })));
	const { id: key } = await createKey(maker, account, { name: "k", projectId: one?.id as string });
	for (const projectId of [two?.id ?? null, null, one?.id ?? null]) {
		await updateKey(statements, { id: key }, { projectId });
		expect((await lastEntry(key, "key"))?.payload).toMatchObject({ projectId });
	}
	await updateKey(statements, { id: key }, { name: "renamed" });
	const replacement = await rotateKey(maker, { id: key }, 0);
	expect((await lastEntry(replacement.id, "key"))?.payload).toMatchObject({ projectId: one?.id, name: "renamed" });
	await revokeKey(statements, { id: replacement.id });
	expect(await getProject(statements, { id: one?.id as string })).toMatchObject({ keys: 0 });
});
