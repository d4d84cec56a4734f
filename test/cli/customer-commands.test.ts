import { expect, test } from "bun:test";
import { keyLoader } from "../../src/keys/keyring.ts";
import { createDigest, parseSecret } from "../../src/keys/secret.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { plainAccountFields } from "../support/plain-key.ts";
import { withCommands } from "./commands-world.ts";
import { runHere } from "./run-here.ts";

const { database, env, run, newAccount, newKey } = await withCommands();

async function load(secret: string) {
	const parsed = parseSecret(secret, "service");
	if (parsed === undefined) throw new Error("no secret");
	return keyLoader(database.statements)(createDigest(env.KEY_PEPPER)(parsed));
}

test("commands for accounts, top-ups and keys print the fields that their help lists", async () => {
	const account = await run("account", "create", "--email", "ada@example.com", "--name", "Ada Lovelace");
	expect(account.exitCode).toBe(0);
	const { id } = account.json();
	expect(account.json()).toEqual({ id: expect.stringMatching(/^acc_[0-9a-f]{32}$/) });

	const topUp = (await run("topup", "create", "--account", id, "--usd", "100", "--reference", "R1")).json();
	expect(topUp).toEqual({ id: expect.stringMatching(/^top_/), status: "pending" } as never);
	expect((await run("topup", "confirm", topUp.id)).json()).toEqual({ status: "confirmed" });
	expect((await run("topup", "confirm", topUp.id)).json()).toEqual({ status: "confirmed" });
	const amounts = { balance_usd: "100.00", held_usd: "0.00", available_usd: "100.00", spent_usd: "0.00" };
	const rest = { auto_top_up: null, tags: [], tokens_per_minute: null, prices: [] };
	for (const shown of await Promise.all([run("account", "show", id), run("account", "show", "ADA@example.com")]))
		expect(shown.json()).toEqual({ id, ...amounts, ...rest });

	const settings = ["--cap-usd", "0.5", "--models", "a,b", "--expires", "2099-01-31"];
	const key = (await run("key", "create", "--account", id, "--name", "prod", ...settings)).json();
	const loaded = await load(key.secret);
	expect(loaded.key).toMatchObject({
		id: key.id,
		name: "prod",
		capNanoUsd: 500_000_000,
		models: ["a", "b"],
		expiresAtMs: Date.UTC(2099, 0, 31),
	});
	expect(loaded.account).toEqual(plainAccountFields);
});

test("list commands print `data` and `next`, and the next call continues at `next`", async () => {
	const account = await newAccount();
	const ids: string[] = [];
	for (let i = 0; i < 3; i++) ids.push((await newKey(account)).id);
	const first = (await run("key", "list", "--account", account, "--limit", "2")).json();
	expect(first.data).toMatchObject([{ id: ids[2] }, { id: ids[1] }]);
	const [second, accounts] = await Promise.all([
		run("key", "list", "--account", account, "--limit", "2", "--after", first.next),
		run("account", "list", "--limit", "1"),
		run("topup", "create", "--account", account, "--usd", "250", "--reference", "list"),
	]);
	expect(second.json()).toMatchObject({ data: [{ id: ids[0] as string }], next: null });
	expect(accounts.json().data).toMatchObject([{ id: account, state: "active", topped_up: false }]);
	const topUps = (await run("topup", "list", "--account", account, "--status", "pending")).json();
	expect(topUps.data).toMatchObject([{ account, usd: "250.00", status: "pending", reference: "list" }]);
});

test("a read-only key is created without a cap and listed as read-only", async () => {
	const account = await newAccount();
	const make = ["key", "create", "--account", account, "--name", "dashboard", "--reads-only"];
	expect((await run(...make, "--cap-usd", "1")).exitCode).toBe(2);
	const { secret } = (await run(...make)).json();
	await newKey(account);
	const listed = (await run("key", "list", "--account", account)).json();
	expect(listed.data).toMatchObject([{ reads_only: false }, { name: "dashboard", reads_only: true, cap_usd: "0.00" }]);
	const loaded = await load(secret);
	expect(loaded.key).toMatchObject({ readsOnly: true, capNanoUsd: 0 });
});

test("an expired key is listed as expired", async () => {
	const account = await newAccount();
	const { id } = await newKey(account);
	await database.sql`update api_key set expires_at = now() - interval '1 minute' where id = ${id}`;
	const listed = await run("key", "list", "--account", account);
	expect(listed.json().data).toMatchObject([{ id, state: "expired" }]);
	const { stdout } = await runHere(["key", "list", "--account", account], env);
	expect(stdout).toContain("expired");
	expect(stdout).not.toContain("active");
});

test("the output of list commands contains no secret", async () => {
	const account = await newAccount();
	const { secret } = await newKey(account);
	const listed = await run("key", "list", "--account", account);
	expect(listed.stdout).not.toContain(secret.slice(16, -4));
	expect(listed.stdout).toContain(secret.slice(-4));
});

test("project commands create, list, change and archive projects", async () => {
	const account = await newAccount();
	const made = await run("project", "create", "--account", account, "--name", "search", "--cap-usd", "5");
	const { id } = made.json();
	const key = (await run("key", "create", "--account", account, "--name", "k", "--project", id)).json();
	const listed = async (of: "project" | "key") => (await run(of, "list", "--account", account)).json().data;
	expect(await listed("key")).toMatchObject([{ id: key.id, project: id, project_state: "active" }]);
	const settings = ["--cap-usd", "none", "--cap-period", "day", "--models", "a,b", "--requests-per-minute", "9"];
	expect((await run("project", "update", id, ...settings)).json()).toMatchObject({ id, effective: true });
	const now = { id, name: "search", cap_usd: null, cap_period: "day", models: ["a", "b"], requests_per_minute: 9 };
	expect(await listed("project")).toMatchObject([{ ...now, keys: 1, state: "active", spent_usd: "0.00" }]);
	const user = crypto.randomUUID();
	await database.sql`insert into console_user (id, name, email, email_verified) values (${user}, 'Ann', 'ann@example.com', true)`;
	const member = (act: string, ...more: string[]) => run("project", "member", act, id, ...more);
	expect((await member("add", "ann@example.com")).exitCode).toBe(1);
	await database.sql`insert into member (user_id, account_id, role) values (${user}, ${account}, 'developer')`;
	await database.sql`update api_key set made_by = ${user} where id = ${key.id}`;
	for (const who of ["Ann@Example.com", user]) expect((await member("add", who)).json()).toEqual({ id, user });
	const members = async () => (await member("list")).json().data;
	expect(await members()).toMatchObject([{ id: user, email: "ann@example.com", name: "Ann" }]);
	expect([(await member("remove", user)).exitCode, (await member("remove", user, "--keys", "all")).exitCode]).toEqual([
		1, 2,
	]);
	expect((await member("remove", user, "--keys", "keep")).json()).toEqual({ id, user, revoked: [] });
	expect(await listed("key")).toMatchObject([{ state: "active" }]);
	expect([await members(), (await member("remove", "nobody", "--keys", "revoke")).exitCode]).toEqual([[], 1]);
	await run("key", "update", key.id, "--project", "none");
	expect(await listed("key")).toMatchObject([{ id: key.id, project: null }]);
	await run("key", "create", "--account", account, "--name", "left", "--project", id);
	expect((await run("project", "archive", id)).json()).toMatchObject({ id, effective: true });
	expect(await listed("project")).toMatchObject([{ keys: 1, state: "archived" }]);
	expect(await listed("key")).toMatchObject([
		{ name: "left", state: "active", project_state: "archived" },
		{ id: key.id, project_state: null },
	]);
	expect((await run("project", "update", id)).exitCode).toBe(2);
});

test("`key update` changes a key and `key rotate` replaces it", async () => {
	const account = await newAccount();
	const { id } = await newKey(account, { capNanoUsd: nanoUsd(5_000_000_000) });
	const settings = ["--cap-usd", "7", "--cap-period", "month", "--models", "x", "--concurrency", "3", "--name", "new"];
	expect((await run("key", "update", id, ...settings)).json()).toMatchObject({ id, effective: true });
	const fresh = (await run("key", "rotate", id, "--grace", "0")).json();
	const { data } = (await run("key", "list", "--account", account)).json();
	expect(data).toMatchObject([
		{ id: fresh.id, name: "new", state: "active", cap_usd: "7.00", cap_period: "month", models: ["x"], concurrency: 3 },
		{ id, state: "revoked", replaced_by: fresh.id },
	]);
});

test("the output of a command with and without --json has the same content", async () => {
	const account = await newAccount();
	const [shown, created] = await Promise.all([
		runHere(["account", "show", account], env),
		runHere(["key", "create", "--account", account, "--name", "k"], env),
	]);
	expect(shown.stdout).toContain("available USD 0.00");
	expect(created.stdout).toContain("sk_service_");
	expect((await runHere(["key", "list", "--account", account], env)).stdout).toContain("SPENT");
});

test("a management key gets the given scopes, and an unknown scope is refused", async () => {
	const made = await run("management-key", "create", "--name", "terraform", "--scopes", "keys:write,keys:read");
	const { id, secret } = made.json();
	expect([made.exitCode, id, secret]).toEqual([
		0,
		expect.stringMatching(/^mgk_[0-9a-f]{32}$/),
		expect.stringMatching(/^tgm_service_[0-9A-Za-z]{46}$/),
	]);
	expect(parseSecret(secret, "service")).toBeUndefined();
	const listed = async () => (await run("management-key", "list")).json().data;
	const [row] = await listed();
	const shown = { id, name: "terraform", state: "active", scopes: ["keys:read", "keys:write"], made_by: "cli" };
	expect(row).toMatchObject({ ...shown, last_four: secret.slice(-4), expires_at: null });
	expect(JSON.stringify(row)).not.toContain(secret.slice(16));
	expect((await run("management-key", "create", "--name", "x", "--scopes", "keys:own")).exitCode).toBe(1);
	expect(
		(await run("management-key", "create", "--name", "x", "--scopes", "all", "--expires", "2020-01-01")).exitCode,
	).toBe(2);
	expect((await run("management-key", "revoke", id)).json()).toEqual({ id, state: "revoked" });
	expect((await run("management-key", "revoke", id)).exitCode).toBe(0);
	expect((await listed())[0]).toMatchObject({ id, state: "revoked" });
	expect((await run("management-key", "revoke", "mgk_none")).exitCode).toBe(1);
});

test("`promotion create` gives credit once per reference, and large sums stay pending", async () => {
	const id = await newAccount();
	const give = (usd: string, reference: string, ...more: string[]) => {
		const asked = ["--account", id, "--usd", usd, "--reason", "welcome", "--reference", reference];
		return runHere(["promotion", "create", "--json", ...asked, ...more], { ...env, TOPUP_SECOND_LOOK_USD: "500" });
	};
	const made = (await give("5", "P1", "--last-day", "2099-01-31")).json();
	expect(made).toEqual({ id: expect.stringMatching(/^adj_/), status: "booked" } as never);
	expect((await give("5", "P1", "--last-day", "2099-01-31")).json().id).toBe(made.id);
	expect((await give("6", "P1")).exitCode).toBe(1);
	expect((await give("5", "P2", "--last-day", "2020-01-31")).stderr).toContain("last day");
	expect((await give("1000", "P3")).json()).toMatchObject({ status: "pending" });
	expect((await run("account", "show", id)).json()).toMatchObject({ balance_usd: "5.00" });
});

test("`price agree` sets prices once per reference, and unusual prices stay pending", async () => {
	const id = await newAccount();
	const agree = (reference: string, ...terms: string[]) => {
		const asked = ["--account", id, "--reason", "contract 7", "--reference", reference, ...terms];
		return runHere(["price", "agree", "--json", ...asked], { ...env, PRICE_SECOND_LOOK_PERCENT: "20" });
	};
	const made = (await agree("A1", "--discount", "12.5")).json();
	expect(made).toMatchObject({ status: "booked", effective: true } as never);
	expect(made.id).toStartWith("adj_");
	expect((await agree("A1", "--discount", "12.5")).json().id).toBe(made.id);
	expect((await agree("A1", "--discount", "13")).exitCode).toBe(1);
	expect((await agree("A2", "--model", "none", "--rates", "input=1,output=2")).stderr).toContain("no model");
	expect((await agree("A3", "--discount", "20")).json()).toMatchObject({ status: "pending" });
	const prices = [{ model: null, discount: "12.5", rates: null, from: null }];
	expect((await run("account", "show", id)).json()).toMatchObject({ prices });
});
