import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { COMMANDS } from "../../src/cli/commands.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { createDigest } from "../../src/keys/digest.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import { keyLoader } from "../../src/keys/key-loader.ts";
import type { KeySettings } from "../../src/keys/key-settings.ts";
import { parseSecret } from "../../src/keys/secret.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { FROM_SOURCE, PROGRAM, runCli } from "./run-cli.ts";
import { runHere } from "./run-here.ts";

const PEPPER = "p".repeat(32);

const database = await withDatabase();
const folder = temporaryFolder();
const env = { DATABASE_URL: database.url, DATA_DIR: join(folder, "data"), KEY_PEPPER: PEPPER, CONSOLE_SECRET: PEPPER };

const run = (...args: string[]) => runHere([...args, "--json"], env);
/** What a test only needs to be there is made without a process. */
async function newAccount(): Promise<string> {
	return (await createAccount(database.statements, { email: `${crypto.randomUUID()}@example.com`, vouched: true })).id;
}
async function newKey(account: string, settings: KeySettings = {}): Promise<{ id: string; secret: string }> {
	const maker = { statements: database.statements, digest: createDigest(PEPPER), serviceName: "service" };
	const { id, secret } = await createKey(maker, account, { name: "k", ...settings });
	return { id, secret };
}

describe("from an account to a key", () => {
	test("account create, topup create, topup confirm, account show, key create print what they are documented to", async () => {
		const account = await run("account", "create", "--email", "ada@example.com", "--name", "Ada Lovelace");
		expect(account.exitCode).toBe(0);
		const { id } = account.json<{ id: string }>();
		expect(account.json<object>()).toEqual({ id: expect.stringMatching(/^acc_[0-9a-f]{32}$/) });

		const topUp = (await run("topup", "create", "--account", id, "--usd", "100", "--reference", "R1")).json<{
			id: string;
		}>();
		expect(topUp).toEqual({ id: expect.stringMatching(/^top_/), status: "pending" } as never);
		expect((await run("topup", "confirm", topUp.id)).json<object>()).toEqual({ status: "confirmed" });
		expect((await run("topup", "confirm", topUp.id)).json<object>()).toEqual({ status: "confirmed" });
		const credit = {
			balance_usd: "100.00",
			held_usd: "0.00",
			available_usd: "100.00",
			spent_usd: "0.00",
			auto_top_up: null,
		};
		for (const shown of await Promise.all([run("account", "show", id), run("account", "show", "ADA@example.com")]))
			expect(shown.json<object>()).toEqual({ id, ...credit });

		const key = (
			await run(
				"key",
				"create",
				"--account",
				id,
				"--name",
				"prod",
				"--cap-usd",
				"0.5",
				"--models",
				"a,b",
				"--expires",
				"2099-01-31",
			)
		).json<{ id: string; secret: string }>();
		const secret = parseSecret(key.secret, "service");
		if (secret === undefined) throw new Error("no secret");
		const loaded = await keyLoader(database.statements)(createDigest(PEPPER)(secret));
		expect(loaded.key).toMatchObject({
			id: key.id,
			name: "prod",
			capNanoUsd: 500_000_000,
			models: ["a", "b"],
			expiresAtMs: Date.UTC(2099, 0, 31),
		});
		expect(loaded.account).toEqual({ state: "active", toppedUp: true, signedIn: true, timeZone: "UTC" });
	});

	test("lists come as data and next, and go on from there", async () => {
		const account = await newAccount();
		const ids: string[] = [];
		for (let i = 0; i < 3; i++) ids.push((await newKey(account)).id);
		const first = (await run("key", "list", "--account", account, "--limit", "2")).json<{
			data: { id: string }[];
			next: string;
		}>();
		expect(first.data.map((key) => key.id)).toEqual([ids[2] as string, ids[1] as string]);
		const [second, accounts] = await Promise.all([
			run("key", "list", "--account", account, "--limit", "2", "--after", first.next),
			run("account", "list", "--limit", "1"),
			run("topup", "create", "--account", account, "--usd", "250", "--reference", "list"),
		]);
		expect(second.json<object>()).toMatchObject({ data: [{ id: ids[0] as string }], next: null });
		expect(accounts.json<{ data: object[] }>().data).toMatchObject([
			{ id: account, state: "active", topped_up: false },
		]);
		const topUps = (await run("topup", "list", "--account", account, "--status", "pending")).json<{ data: object[] }>();
		expect(topUps.data).toMatchObject([{ account, usd: "250.00", status: "pending", reference: "list" }]);
	});

	test("a key that only reads is made with no cap, and is listed as what it is", async () => {
		const account = await newAccount();
		const make = ["key", "create", "--account", account, "--name", "dashboard", "--reads-only"];
		expect((await run(...make, "--cap-usd", "1")).exitCode).toBe(2);
		const { secret } = (await run(...make)).json<{ secret: string }>();
		await newKey(account);
		const listed = (await run("key", "list", "--account", account)).json<{ data: object[] }>();
		expect(listed.data).toMatchObject([
			{ reads_only: false },
			{ name: "dashboard", reads_only: true, cap_usd: "0.00" },
		]);
		const parsed = parseSecret(secret, "service");
		if (parsed === undefined) throw new Error("no secret");
		const loaded = await keyLoader(database.statements)(createDigest(PEPPER)(parsed));
		expect(loaded.key).toMatchObject({ readsOnly: true, capNanoUsd: 0 });
	});

	test("no secret is ever listed", async () => {
		const account = await newAccount();
		const { secret } = await newKey(account);
		const listed = await run("key", "list", "--account", account);
		expect(listed.stdout).not.toContain(secret.slice(16, -4));
		expect(listed.stdout).toContain(secret.slice(-4));
	});

	test("a project is made, listed, changed and archived; keys are made in it and moved out of it", async () => {
		const account = await newAccount();
		const made = await run("project", "create", "--account", account, "--name", "search", "--cap-usd", "5");
		const { id } = made.json<{ id: string }>();
		const key = (await run("key", "create", "--account", account, "--name", "k", "--project", id)).json<{
			id: string;
		}>();
		const listed = async (of: "project" | "key") =>
			(await run(of, "list", "--account", account)).json<{ data: object[] }>().data;
		expect(await listed("key")).toMatchObject([{ id: key.id, project: id }]);
		const settings = ["--cap-usd", "none", "--cap-period", "day", "--models", "a,b", "--requests-per-minute", "9"];
		expect((await run("project", "update", id, ...settings)).json<object>()).toMatchObject({ id, effective: true });
		const now = { id, name: "search", cap_usd: null, cap_period: "day", models: ["a", "b"], requests_per_minute: 9 };
		expect(await listed("project")).toMatchObject([{ ...now, keys: 1, state: "active", spent_usd: "0.00" }]);
		const user = crypto.randomUUID();
		await database.sql`insert into console_user (id, name, email, email_verified) values (${user}, 'Ann', 'ann@example.com', true)`;
		const member = (act: string, ...more: string[]) => run("project", "member", act, id, ...more);
		expect((await member("add", "ann@example.com")).exitCode).toBe(1);
		await database.sql`insert into member (user_id, account_id, role) values (${user}, ${account}, 'member')`;
		await database.sql`update api_key set made_by = ${user} where id = ${key.id}`;
		for (const who of ["Ann@Example.com", user])
			expect((await member("add", who)).json<object>()).toEqual({ id, user });
		const members = async () => (await member("list")).json<{ data: object[] }>().data;
		expect(await members()).toMatchObject([{ id: user, email: "ann@example.com", name: "Ann" }]);
		expect([(await member("remove", user)).exitCode, (await member("remove", user, "--keys", "all")).exitCode]).toEqual(
			[1, 2],
		);
		expect((await member("remove", user, "--keys", "keep")).json<object>()).toEqual({ id, user, revoked: [] });
		expect(await listed("key")).toMatchObject([{ state: "active" }]);
		expect([await members(), (await member("remove", "nobody", "--keys", "revoke")).exitCode]).toEqual([[], 1]);
		await run("key", "update", key.id, "--project", "none");
		expect(await listed("key")).toMatchObject([{ id: key.id, project: null }]);
		expect((await run("project", "archive", id)).json<object>()).toMatchObject({ id, effective: true });
		expect(await listed("project")).toMatchObject([{ keys: 0, state: "archived" }]);
		expect((await run("project", "update", id)).exitCode).toBe(2);
	});

	test("update and rotate change and replace a key", async () => {
		const account = await newAccount();
		const { id } = await newKey(account, { capNanoUsd: nanoUsd(5_000_000_000) });
		expect(
			(
				await run(
					"key",
					"update",
					id,
					"--cap-usd",
					"7",
					"--cap-period",
					"month",
					"--models",
					"x",
					"--concurrency",
					"3",
					"--name",
					"new",
				)
			).json<object>(),
		).toMatchObject({ id, effective: true });
		const fresh = (await run("key", "rotate", id, "--grace", "0")).json<{ id: string; secret: string }>();
		const { data } = (await run("key", "list", "--account", account)).json<{ data: object[] }>();
		expect(data).toMatchObject([
			{
				id: fresh.id,
				name: "new",
				state: "active",
				cap_usd: "7.00",
				cap_period: "month",
				models: ["x"],
				concurrency: 3,
			},
			{ id, state: "revoked", replaced_by: fresh.id },
		]);
	});

	test("without --json people read the same", async () => {
		const account = await newAccount();
		const [shown, created] = await Promise.all([
			runHere(["account", "show", account], env),
			runHere(["key", "create", "--account", account, "--name", "k"], env),
		]);
		expect(shown.stdout).toContain("available USD 0.00");
		expect(created.stdout).toContain("sk_service_");
		expect((await runHere(["key", "list", "--account", account], env)).stdout).toContain("SPENT");
	});
});

test("a management key is made with scopes, listed without its secret, and revoked; what is no scope is refused", async () => {
	const made = await run("management-key", "create", "--name", "terraform", "--scopes", "keys:write,keys:read");
	const { id, secret } = made.json<{ id: string; secret: string }>();
	expect([made.exitCode, id, secret]).toEqual([
		0,
		expect.stringMatching(/^mgk_[0-9a-f]{32}$/),
		expect.stringMatching(/^tgm_service_[0-9A-Za-z]{46}$/),
	]);
	expect(parseSecret(secret, "service")).toBeUndefined();
	const listed = async () => (await run("management-key", "list")).json<{ data: Record<string, unknown>[] }>().data;
	const [row] = await listed();
	const shown = { id, name: "terraform", state: "active", scopes: ["keys:read", "keys:write"], made_by: "cli" };
	expect(row).toMatchObject({ ...shown, last_four: secret.slice(-4), expires_at: null });
	expect(JSON.stringify(row)).not.toContain(secret.slice(16));
	expect((await run("management-key", "create", "--name", "x", "--scopes", "keys:own")).exitCode).toBe(1);
	expect(
		(await run("management-key", "create", "--name", "x", "--scopes", "all", "--expires", "2020-01-01")).exitCode,
	).toBe(2);
	expect((await run("management-key", "revoke", id)).json<object>()).toEqual({ id, state: "revoked" });
	expect((await run("management-key", "revoke", id)).exitCode).toBe(0);
	expect((await listed())[0]).toMatchObject({ id, state: "revoked" });
	expect((await run("management-key", "revoke", "mgk_none")).exitCode).toBe(1);
});

describe("waiting until a change is in force", () => {
	async function addInstance(id: string, leaseSeconds: number): Promise<void> {
		await database.sql`
			insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until)
			values (${id}, 1, 1, 'live', ${leaseSeconds * 1_000}, now() + make_interval(secs => ${leaseSeconds}))`;
	}
	const stateOf = async (id: string) => (await database.sql`select state from instance_now where id = ${id}`)[0]?.state;
	const removeAll = () => database.sql`delete from instance_beat`;

	test("a rotation and new settings are waited for too, and a new secret is shown whatever comes of it", async () => {
		const { id } = await newKey(await newAccount());
		await addInstance("away", 600);
		const later = await run("key", "update", id, "--cap-usd", "1", "--no-wait");
		expect(later.json<object>()).toMatchObject({ id, effective: false, pending: [{ id: "away" }] });
		expect((await run("key", "update", id, "--cap-usd", "2", "--timeout", "1s")).exitCode).toBe(1);
		const rotated = await run("key", "rotate", id, "--grace", "0", "--timeout", "1s");
		expect(rotated.exitCode).toBe(1);
		expect(rotated.json<object>()).toMatchObject({ effective: false, secret: expect.any(String) });
		await removeAll();
	});

	test("a rotation that is interrupted while it waits has said how to see its secret", async () => {
		const { id } = await newKey(await newAccount());
		await addInstance("away", 600);
		const child = Bun.spawn([...PROGRAM, "key", "rotate", id, "--grace", "0", "--json"], {
			env: { PATH: process.env.PATH ?? "", ...env },
			stdio: ["ignore", "pipe", "pipe"],
		});
		const replacement = async () =>
			(await database.sql`select replaced_by from api_key where id = ${id}`)[0]?.replaced_by;
		const reader = child.stderr.getReader();
		const { value } = await reader.read();
		child.kill("SIGINT");
		await child.exited;
		const [, token = ""] = /--token (\S+)`/.exec(new TextDecoder().decode(value)) ?? [];
		const again = await run("key", "rotate", id, "--token", token, "--no-wait");
		expect(again.json<object>()).toMatchObject({ id: await replacement(), secret: expect.any(String) });
		expect(await new Response(child.stdout).text()).toBe("");
		await removeAll();
	}, 20_000);

	test("with no instance a revocation is in force at once", async () => {
		const { id } = await newKey(await newAccount());
		const revoked = await run("key", "revoke", id);
		expect(revoked.exitCode).toBe(0);
		expect(revoked.json<object>()).toEqual({ id, effective: true, elapsed_ms: expect.any(Number) });
	});

	test("an instance that is silent is waited for until its lease is over, and is fenced off then", async () => {
		const { id } = await newKey(await newAccount());
		await addInstance("silent", 1);
		const startedMs = performance.now();
		const revoked = await run("key", "revoke", id);
		expect(revoked.json<object>()).toMatchObject({ effective: true });
		expect(performance.now() - startedMs).toBeGreaterThan(1_500);
		expect(await stateOf("silent")).toBe("dead");
		await removeAll();
	});

	test("--no-wait names those that do not know of it; a deadline that passes is a failure", async () => {
		const { id } = await newKey(await newAccount());
		await addInstance("busy", 300);
		const noWait = await run("key", "revoke", id, "--no-wait");
		expect(noWait.exitCode).toBe(0);
		expect(noWait.json<object>()).toMatchObject({ id, effective: false, pending: [{ id: "busy", epoch: 1 }] });
		const timedOut = await run("key", "revoke", id, "--timeout", "0");
		expect([timedOut.exitCode, timedOut.json<{ effective: boolean }>().effective]).toEqual([1, false]);
		await removeAll();
	});

	test("an instance that applies it ends the wait", async () => {
		const account = await newAccount();
		await addInstance("quick", 300);
		const suspended = run("account", "suspend", account);
		const giveUpAt = performance.now() + 25_000;
		while (performance.now() < giveUpAt) {
			const [row] = await database.sql`select max(seq) as seq from control_log where subject = ${account}`;
			if (row?.seq !== null) break;
			await Bun.sleep(5);
		}
		await database.sql`update instance_beat set applied_seq = (select max(seq) from control_log) where id = 'quick'`;
		expect((await suspended).json<object>()).toMatchObject({ id: account, state: "suspended", effective: true });
		expect((await run("account", "unsuspend", account, "--no-wait")).json<object>()).toMatchObject({ state: "active" });
		await removeAll();
	});

	test("all instances that there ever were are listed, a page after the other, each once", async () => {
		await removeAll();
		await database.sql`
			insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until, started_at)
			select 'past-' || n % 7, n, 1, 'left', 1000, now(), now() - make_interval(mins => n / 3) from generate_series(1, 2500) n`;
		const seen: string[] = [];
		for (let after: string | null = ""; after !== null; ) {
			const page = await run("instance", "list", "--all", ...(after === "" ? [] : ["--after", after]));
			const { data, next } = page.json<{ data: { id: string; epoch: number }[]; next: string | null }>();
			seen.push(...data.map(({ id, epoch }) => `${id} ${epoch}`));
			after = next;
		}
		expect([seen.length, new Set(seen).size]).toEqual([2500, 2500]);
		expect((await run("instance", "list", "--all", "--after", seen.at(-1)?.replace(" ", ":") ?? "")).exitCode).toBe(0);
		// One that was removed between two pages is not the end of the list.
		const { exitCode, stderr } = await run("instance", "list", "--all", "--after", "past-1:9999");
		expect([exitCode, stderr]).toEqual([1, expect.stringContaining("past-1:9999")]);
		await removeAll();
	});

	test("instances are listed, and a lost one is recovered only once its lease is over and its loss attested", async () => {
		await addInstance("gone", 300);
		const { data } = (await run("instance", "list")).json<{ data: object[] }>();
		expect(data).toMatchObject([{ id: "gone", epoch: 1, state: "live", lease_over: false, leased_usd: "0.00" }]);
		expect((await run("instance", "recover", "gone")).exitCode).toBe(2);
		let renews = true;
		const renewing = (async () => {
			while (renews) {
				// Its lease is longer than the test: what is noticed is that it renews, however seldom it comes to that.
				await database.sql`select instance_renew('gone', 1, 0, 300000)`;
				await Bun.sleep(20);
			}
		})();
		const running = await run("instance", "recover", "gone", "--journal-lost");
		expect([running.exitCode, JSON.parse(running.stderr).error.code]).toEqual([1, "conflict"]);
		renews = false;
		await renewing;
		await database.sql`select instance_renew('gone', 1, 0, 500)`;
		const startedMs = performance.now();
		expect((await run("instance", "recover", "gone", "--journal-lost")).json<object>()).toEqual({
			id: "gone",
			epochs: 1,
			leases: 0,
		});
		expect(performance.now() - startedMs).toBeGreaterThan(1_500);
		expect((await run("instance", "list")).json<object>()).toEqual({ data: [], next: null });
		expect((await run("instance", "list", "--all")).json<{ data: object[] }>().data).toMatchObject([
			{ id: "gone", state: "left" },
		]);
		await removeAll();
	});
});

describe("the books and the catalogue", () => {
	test("reconcile is ok on sound books and exits 1 on broken ones", async () => {
		const sound = await run("ledger", "reconcile");
		expect(sound.json<{ checks: { ok: boolean }[] }>()).toMatchObject({ ok: true } as never);
		expect(sound.json<{ checks: unknown[] }>().checks.length).toBeGreaterThan(5);
		const account = await newAccount();
		await database.sql`update budget set limit_nano_usd = 1 where id = ${account}`;
		const broken = await run("ledger", "reconcile");
		expect([broken.exitCode, broken.json<{ ok: boolean }>().ok]).toEqual([1, false]);
		await database.sql`update budget set limit_nano_usd = 0 where id = ${account}`;
	});

	test("the sealed days are listed page by page, newest first", async () => {
		expect((await run("ledger", "seals")).json<{ data: unknown[] }>().data).toEqual([]);
		await database.sql`
			insert into sealed_day (day, usage_rows, charged_nano_usd, usage_hash, entry_hash, seal, problem)
			select date '2026-01-01' + n, n, n * 1e9, '', '', decode(lpad(n::text, 64, '0'), 'hex'), case n when 1 then 'changed' end
			from generate_series(0, 2) n`;
		const pages = [await run("ledger", "seals", "--limit", "2"), await run("ledger", "seals", "--after", "2026-01-02")];
		expect(pages.map((page) => page.json())).toMatchObject([
			{
				next: "2026-01-02",
				data: [
					{ day: "2026-01-03", requests: 2, charged_usd: "2.00", seal: `${"0".repeat(63)}2`, problem: null },
					{ day: "2026-01-02", problem: "changed" },
				],
			},
			{ next: null, data: [{ day: "2026-01-01" }] },
		]);
		expect((await run("ledger", "seals", "--after", "yesterday")).exitCode).toBe(1);
		await database.sql`delete from sealed_day`;
	});

	test("sealed days are archived in a folder and verified there; a file that was changed exits 1", async () => {
		const archive = join(folder, "archive");
		expect((await run("ledger", "archive", archive)).json<{ days: string[] }>().days).toEqual([]);
		expect((await run("ledger", "verify", archive)).exitCode).toBe(1);
		await database.sql`
			insert into sealed_day (day, usage_hash, entry_hash, seal)
			select s.day, s.usage_hash, s.entry_hash, books_seal_of(s, null) from (
				select (jsonb_populate_record(null::sealed_day, '{"day": "2000-01-01", "usage_rows": 0, "charged_nano_usd": 0,
					"written_off_nano_usd": 0, "usage_hash": "", "entry_rows": 0, "top_up_nano_usd": 0, "refund_nano_usd": 0,
					"adjustment_nano_usd": 0, "dispute_nano_usd": 0, "credit_note_nano_usd": 0, "entry_hash": "",
					"granted_nano_usd": 0, "returned_nano_usd": 0}')).* ) s`;
		expect((await run("ledger", "archive", archive)).json<{ days: string[] }>().days).toEqual(["2000-01-01"]);
		const sound = await run("ledger", "verify", archive);
		const { ok, newest_seal } = sound.json<{ ok: boolean; newest_seal: string }>();
		expect([sound.exitCode, ok]).toEqual([0, true]);
		expect((await run("ledger", "verify", archive, "--seal", newest_seal)).exitCode).toBe(0);
		expect((await run("ledger", "verify", archive, "--seal", "0".repeat(64))).exitCode).toBe(1);
		const path = join(archive, "usage-2000-01-01.parquet");
		expect((await run("ledger", "verify", path)).exitCode).toBe(0);
		writeFileSync(path, "no Parquet");
		const broken = await run("ledger", "verify", path);
		expect([broken.exitCode, broken.json<{ ok: boolean }>().ok]).toEqual([1, false]);
		await database.sql`delete from sealed_day`;
	});

	test("catalog check needs neither database nor configuration", async () => {
		const good = join(folder, "good.yaml");
		writeFileSync(
			good,
			"models:\n  - id: m\n    kind: chat\n    context_length: 1000\n    max_output_tokens: 100\n    rates: { input: '1', output: '2' }\n    upstreams:\n      - { url: 'http://127.0.0.1:1/v1', model: m, dialect: openai }\n",
		);
		const bad = join(folder, "bad.yaml");
		writeFileSync(bad, "models:\n  - id: m\n    colour: red\n");
		const broken = { NODE_ENV: "production", PORT: "x" };
		const [checked, refused, missing, shown] = await Promise.all([
			runHere(["catalog", "check", good, "--json"], broken),
			runHere(["catalog", "check", bad, "--json"], broken),
			runHere(["catalog", "check", join(folder, "none.yaml")], broken),
			runHere(["catalog", "show", "--json"], { ...env, CONFIG: good }),
		]);
		expect(checked.json<object>()).toMatchObject({
			ok: true,
			models: [{ id: "m", rates: { input: "1", output: "2" } }],
		});
		expect(refused.exitCode).toBe(1);
		expect(refused.json<{ problems: { line: number }[] }>().problems.map((problem) => problem.line)).toContain(3);
		expect(missing.exitCode).toBe(1);
		expect(shown.json<object>()).toMatchObject({ ok: true, models: [{ id: "m" }] });
	});
});

test("nothing that a command shows moves the operator's cursor: names and addresses, errors, and JSON, which says the same", async () => {
	const name = "one\u001b[2J\u009b31m\u202etwo\u{e0041}";
	const id = await newAccount();
	await database.sql`update account set name = ${name} where id = ${id}`;
	const signs = /[\p{Cc}\p{Cf}]/u;
	const told = [
		await runHere(["account", "show", id], env),
		await runHere(["account", "show", `x${name}`], env),
		await runHere(["account", "list", "--json"], env),
	];
	for (const { stdout, stderr } of told) expect(`${stdout}${stderr}`.replaceAll("\n", "")).not.toMatch(signs);
	expect(told.map(({ stdout, stderr }) => `${stdout}${stderr}`.includes("one"))).toEqual([true, true, true]);
	const listed = told[2]?.json<{ data: { id: string; name: string }[] }>().data;
	expect(listed?.find((one) => one.id === id)?.name).toBe(name);
});

describe("errors", () => {
	test("wrong usage is exit code 2 with the reason on stderr and nothing on stdout", async () => {
		const wrong = [
			["nope"],
			["key"],
			["key", "nope"],
			["account", "create"],
			["account", "show"],
			["account", "show", "a", "b"],
			["key", "list", "--account"],
			["topup", "create", "--account", "a", "--usd", "1e3", "--reference", "r"],
			["account", "list", "--nope"],
			["key", "rotate", "k", "--grace", "soon"],
			["key", "create", "--account", "a", "--name", "n", "--expires", "2027-02-31"],
			["key", "update", "k"],
			["serve", "--nope"],
		];
		// One that commands refuse and one that `serve` does, as processes; the others are read by the same code.
		const results = await Promise.all(
			wrong.map((args) => (["nope", "serve"].includes(args[0] as string) ? runCli : runHere)(args, env)),
		);
		for (const [place, result] of results.entries()) {
			expect({ args: wrong[place], exitCode: result.exitCode, stdout: result.stdout }).toEqual({
				args: wrong[place],
				exitCode: 2,
				stdout: "",
			});
			expect(result.stderr).toStartWith("error: ");
		}
	});

	test("a refusal is exit code 1 with the reason on stderr, as JSON too", async () => {
		const account = await newAccount();
		const [little, missing] = await Promise.all([
			run("topup", "create", "--account", account, "--usd", "99.99", "--reference", "little"),
			runCli(["account", "show", "acc_none"], env),
		]);
		expect([little.exitCode, little.stdout]).toEqual([1, ""]);
		expect(JSON.parse(little.stderr)).toEqual({
			error: { code: "invalid_request", message: "A top-up is at least USD 100." },
		});
		expect([missing.exitCode, missing.stdout, missing.stderr]).toEqual([
			1,
			"",
			"error: There is no account acc_none.\n",
		]);
	});

	test("of an id that nobody has every command says that it is not there, in one line", async () => {
		const more: Record<string, string[]> = {
			"account update": ["--name", "n"],
			"key update": ["--name", "n"],
			"project update": ["--name", "n"],
			"instance recover": ["--journal-lost"],
		};
		const named = COMMANDS.filter((command) => command.arguments[0] === "ID");
		expect(named.length).toBeGreaterThan(15);
		const results = await Promise.all(
			named.map(async ({ name, arguments: [, ...others] }) => {
				const given = [...name.split(" "), "nobody's", ...others.map(() => "a@example.com"), ...(more[name] ?? [])];
				const { exitCode, stdout, stderr } = await run(...given);
				return { name, exitCode, stdout, code: JSON.parse(stderr).error.code };
			}),
		);
		const missing = { exitCode: 1, stdout: "", code: "not_found" };
		expect(results).toEqual(named.map(({ name }) => ({ name, ...missing })));
	});

	test("of an account that nobody has every command says that it is not there, lists too", async () => {
		const values: Record<string, string> = { account: "nobody's", name: "n", usd: "100", reference: "R9" };
		const named = COMMANDS.filter(({ options }) => options.account !== undefined);
		expect(named.map(({ name }) => name)).toContain("topup list");
		for (const { name, options } of named) {
			const asked = Object.entries(options).filter(([option, { required }]) => required || option === "account");
			const given = asked.flatMap(([option]) => [`--${option}`, values[option] ?? ""]);
			const { exitCode, stdout, stderr } = await run(...name.split(" "), ...given);
			expect({ name, exitCode, stdout, error: JSON.parse(stderr).error }).toEqual({
				name,
				exitCode: 1,
				stdout: "",
				error: { code: "not_found", message: "There is no account nobody's." },
			});
		}
	});

	test("lists take an account's e-mail address as `account show` does", async () => {
		const email = `${crypto.randomUUID()}@example.com`;
		const { id } = await createAccount(database.statements, { email, vouched: true });
		await newKey(id);
		const keys = await run("key", "list", "--account", email.toUpperCase());
		expect(keys.stdout.match(/"id":"key_/g)).toHaveLength(1);
	});

	test("a wrong configuration or a database that is away is exit code 1, without a stack or a password", async () => {
		const [configuration, away] = await Promise.all([
			runCli(["account", "list"], { ...env, PORT: "x" }),
			runCli(["account", "list"], { ...env, DATABASE_URL: "postgres://user:hunter2@127.0.0.1:1/x" }),
		]);
		expect([configuration.exitCode, configuration.stdout]).toEqual([1, ""]);
		expect(configuration.stderr).toContain("PORT");
		expect([away.exitCode, away.stdout]).toEqual([1, ""]);
		expect(away.stderr).toStartWith("error: ");
		expect(away.stderr).not.toContain("hunter2");
		expect(away.stderr).not.toContain("    at ");
	});

	test("help and version need nothing, and every command has its own help", async () => {
		const broken = { PORT: "x" };
		const [help, version, ...helps] = await Promise.all([
			runCli(["help"], broken),
			runCli(["version", "--json"], broken, undefined, FROM_SOURCE),
			runCli(["key", "revoke", "--help"], broken),
			runCli(["help", "key", "revoke"], broken),
		]);
		expect([help.exitCode, help.stderr]).toEqual([0, ""]);
		for (const name of ["serve", "migrate", "key revoke", "topup reject", "instance recover", "DATABASE_URL"])
			expect(help.stdout).toContain(name);
		expect(helps).toHaveLength(2);
		for (const { stdout } of helps) expect(stdout).toStartWith("Usage: tollgate key revoke <ID>");
		expect(version.json<object>()).toEqual({
			version: packageJson.version,
			// From source nobody says which commit it is.
			commit: null,
		});
	});
});
