import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../src/base/log.ts";
import { loadConfig } from "../../src/config.ts";
import { runningEmbeddedUrl, startEmbeddedPostgres } from "../../src/db/embedded.ts";
import { findPostmaster } from "../../src/db/postmaster.ts";
import { quietPort, startServe } from "../chaos/serve-process.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import { placeCluster } from "../support/made-cluster.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { childrenWithRole, environmentOf } from "../support/processes.ts";
import { waitFor } from "../support/wait.ts";
import { FROM_SOURCE, runCli } from "./run-cli.ts";
import { runHere } from "./run-here.ts";

const folder = temporaryFolder(quickFolder());

/** Starts a command that starts its own database, through `runner` (such as `nohup`) if given. */
function startCheck(runner: readonly string[] = []): Bun.Subprocess {
	return Bun.spawn([...runner, ...FROM_SOURCE, "ledger", "reconcile"], {
		cwd: folder,
		env: { PATH: Bun.env.PATH ?? "", HOME: Bun.env.HOME ?? "", DATA_DIR: join(folder, "data") },
		stdout: "ignore",
		stderr: "ignore",
	});
}

describe("without DATABASE_URL", () => {
	test("a command starts the embedded database, or uses the running one", async () => {
		const env = { DATA_DIR: join(folder, "data") };
		const { dataDir } = loadConfig(env, folder);
		const created = await runCli(["account", "create", "--email", "a@example.com", "--json"], env, folder, FROM_SOURCE);
		expect(created.stderr).toBe(`there is no database yet: creating an embedded one in ${join(dataDir, "postgres")}\n`);
		const { id } = created.json();
		expect(runningEmbeddedUrl(dataDir)).toBeUndefined();

		const server = await startEmbeddedPostgres({ log: silentLog }, { dataDir });
		try {
			const key = await runHere(["key", "create", "--account", id, "--name", "k", "--json"], env, folder);
			expect(key.json().secret).toStartWith("sk_service_");
			expect(key.stderr).toContain("KEY_PEPPER is not set: created one");
			// Ignores files whose names start with `postgres`: this test is about the files of the service itself.
			const made = readdirSync(dataDir).filter((name) => !name.startsWith("postgres"));
			expect(made.toSorted()).toEqual(["database-timelines.json", "secrets.json"]);
			const migrated = await runHere(["migrate", "--json"], env, folder);
			expect(migrated.json()).toEqual({ applied: [] });
			expect(runningEmbeddedUrl(dataDir)).toBe(server.url);
		} finally {
			await server.stop();
		}
	}, 60_000);

	test("a command in a folder without a database reports this and creates none", async () => {
		const elsewhere = join(folder, "elsewhere");
		mkdirSync(elsewhere);
		for (const args of [
			["account", "list"],
			["key", "create", "--account", "a", "--name", "n"],
			["ledger", "reconcile"],
		]) {
			const { exitCode, stdout, stderr } = await runHere(args, {}, elsewhere);
			expect([args, exitCode, stdout]).toEqual([args, 1, ""]);
			expect(stderr).toContain(
				`There is no database in ${join(elsewhere, ".data", "demo", "postgres")}. Set DATABASE_URL`,
			);
		}
		expect(readdirSync(elsewhere)).toEqual([]);
	}, 30_000);

	const signals = [
		["SIGHUP", 129] as const,
		...(LONG
			? ([
					["SIGINT", 130],
					["SIGTERM", 143],
				] as const)
			: []),
	];
	test.each(signals)(
		"a command ended by %s stops the database that it started",
		async (signal, exitCode) => {
			const { dataDir } = loadConfig({ DATA_DIR: join(folder, "data") }, folder);
			const cluster = join(dataDir, "postgres", "cluster");
			const child = startCheck();
			await waitFor(() => findPostmaster(cluster) !== undefined, "the server to be started", 30_000);
			child.kill(signal);
			expect(await child.exited).toBe(exitCode);
			await waitFor(() => findPostmaster(cluster) === undefined, "the server's end", 30_000);
		},
		60_000,
	);

	test.if(LONG)("under nohup a command continues after its terminal closed", async () => {
		const { dataDir } = loadConfig({ DATA_DIR: join(folder, "data") }, folder);
		const child = startCheck(["sh", "-c", 'trap "" HUP; exec "$@"', "sh"]);
		const cluster = join(dataDir, "postgres", "cluster");
		await waitFor(() => findPostmaster(cluster) !== undefined, "the server to be started", 30_000);
		child.kill("SIGHUP");
		expect([await child.exited, child.signalCode]).toEqual([0, null]);
		expect(findPostmaster(cluster)).toBeUndefined();
	});

	test("a service stopped during its start stops the database that it started", async () => {
		const { dataDir } = loadConfig({ DATA_DIR: join(folder, "data") }, folder);
		const cluster = join(dataDir, "postgres", "cluster");
		const child = Bun.spawn([...FROM_SOURCE, "serve"], {
			cwd: folder,
			env: { PATH: Bun.env.PATH ?? "", HOME: Bun.env.HOME ?? "", DATA_DIR: join(folder, "data"), PORT: "0" },
			stdout: "ignore",
			stderr: "ignore",
		});
		await waitFor(() => findPostmaster(cluster) !== undefined, "the server to be started", 30_000);
		child.kill("SIGTERM");
		expect([await child.exited, child.signalCode]).toEqual([0, null]);
		expect(findPostmaster(cluster)).toBeUndefined();
	}, 60_000);

	// `leaving.test.ts` tests the same with an external database.
	test.if(LONG)("a second signal stops service and database at once, and clears RUN_DIR", async () => {
		const dataDir = join(folder, "twice");
		mkdirSync(dataDir);
		await placeCluster(dataDir);
		writeFileSync(join(folder, "none.yaml"), "models: []\n");
		const server = await startServe(
			{ ROLE: "all", DATA_DIR: dataDir, CONFIG: join(folder, "none.yaml"), PORT: String(quietPort()), DRAIN_S: "60" },
			{ ready: "all processes are ready", program: FROM_SOURCE },
		);
		const cluster = join(dataDir, "postgres", "cluster");
		expect(findPostmaster(cluster)).toBeDefined();
		const [gateway = 0] = childrenWithRole(server.pid, "gateway");
		const { RUN_DIR: runDir = "" } = environmentOf(gateway);
		expect(existsSync(runDir)).toBe(true);
		// Sends the signal again until it counts as a second one: two signals within a second count as one.
		await waitFor(() => {
			server.kill("SIGTERM");
			return server.hasExited();
		}, "the parent's end");
		expect(await server.exited).toBe(1);
		await waitFor(() => findPostmaster(cluster) === undefined, "the server's end", 30_000);
		expect(existsSync(runDir)).toBe(false);
	});
});
