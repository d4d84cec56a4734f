import { expect, test } from "bun:test";
import packageJson from "../../package.json" with { type: "json" };
import { COMMANDS } from "../../src/cli/commands.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { withCommands } from "./commands-world.ts";
import { FROM_SOURCE, runCli } from "./run-cli.ts";
import { runHere } from "./run-here.ts";

const { database, env, run, newAccount, newKey } = await withCommands();

test("the output of every command has no terminal control characters", async () => {
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
	expect(told[2]?.json().data).toContainEqual(expect.objectContaining({ id, name }));
});

test("a usage error exits 2, with the reason on stderr and nothing on stdout", async () => {
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
	// Runs one usage error of a command and one of `serve` as processes; all other commands use the same parser.
	const results = await Promise.all(
		wrong.map((args) => (["nope", "serve"].includes(args[0] as string) ? runCli : runHere)(args, env)),
	);
	for (const [place, result] of results.entries()) {
		const args = wrong[place];
		expect({ args, exitCode: result.exitCode, stdout: result.stdout }).toEqual({ args, exitCode: 2, stdout: "" });
		expect(result.stderr).toStartWith("error: ");
	}
});

test("a refused command exits 1 with the reason on stderr, in JSON with --json", async () => {
	const account = await newAccount();
	const [little, missing] = await Promise.all([
		run("topup", "create", "--account", account, "--usd", "99.99", "--reference", "little"),
		runCli(["account", "show", "acc_none"], env),
	]);
	expect([little.exitCode, little.stdout]).toEqual([1, ""]);
	const error = { code: "invalid_request", message: "A top-up is at least USD 100." };
	expect(JSON.parse(little.stderr)).toEqual({ error });
	expect([missing.exitCode, missing.stdout, missing.stderr]).toEqual([1, "", "error: There is no account acc_none.\n"]);
});

test("every command with an unknown id says in one line that it does not exist", async () => {
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

test("every command with an unknown account says that the account does not exist", async () => {
	const values: Record<string, string> = { account: "nobody's", name: "n", usd: "100", reference: "R9", reason: "why" };
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

test("list commands accept an account's mail address, as `account show` does", async () => {
	const email = `${crypto.randomUUID()}@example.com`;
	const { id } = await createAccount(database.statements, { email, vouched: true });
	await newKey(id);
	const keys = await run("key", "list", "--account", email.toUpperCase());
	expect(keys.stdout.match(/"id":"key_/g)).toHaveLength(1);
});

test("a wrong configuration or missing database exits 1 without a stack trace", async () => {
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

test("`help` and `version` need no configuration", async () => {
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
	expect(version.json()).toEqual({
		version: packageJson.version,
		// A service run from source does not know its commit.
		commit: null,
	});
});

test("a command that loses its database connection says that it may have taken effect", async () => {
	const account = await newAccount();
	await database.sql.unsafe(`
		create function cut_off() returns trigger language plpgsql as $$ begin
			perform pg_terminate_backend(pg_backend_pid());
			return new;
		end $$;
		create trigger cut_off before insert on top_up for each row when (new.reference = 'cut off') execute function cut_off()`);
	const made = ["--account", account, "--usd", "100", "--reference", "cut off"];
	const { exitCode, stderr } = await run("topup", "create", ...made);
	expect([exitCode, stderr]).toEqual([1, expect.stringContaining("The command may have taken effect")]);
	expect(stderr).not.toContain("pooler");
});
