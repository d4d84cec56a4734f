import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runtimeEnvironment } from "../../src/cli/runtime-environment.ts";
import { startServe } from "../chaos/serve-process.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { environmentOf } from "../support/processes.ts";
import { serviceFolder } from "../support/service-folder.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { runCli } from "./run-cli.ts";

const database = await withDatabase();
const { folder, environment } = serviceFolder(database);
const short = { DRAIN_S: "2", LEASE_TTL_S: "5" };

describe("the command `serve`", () => {
	test("serves until SIGTERM, leaves the cluster and exits 0", async () => {
		const env = environment("whole", short);
		const server = await startServe({ ...env, ROLE: "all" });
		expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
		const instances = async () => (await runCli(["instance", "list", "--json"], env)).json().data;
		expect(await instances()).toMatchObject([{ state: "live" }]);
		server.kill("SIGTERM");
		expect(await server.exited).toBe(0);
		expect(await instances()).toEqual([]);
	});

	test("exits 0 without a database, and says that the journal must not be deleted", async () => {
		const { hostname, port } = new URL(database.url);
		const way = startTcpProxy({ hostname, port: Number(port) });
		try {
			const away = Object.assign(new URL(database.url), { port: String(way.port) }).href;
			const more = { ...short, ROLE: "all", DATABASE_URL: away };
			const server = await startServe(environment("away", more), { ready: "all processes are ready" });
			way.cut();
			server.kill("SIGTERM");
			const kept =
				"some settlements are not in the database: the journal keeps them for the next start on this DATA_DIR";
			await server.logged(({ message }) => message === kept, "that the journal is kept");
			expect(await server.exited).toBe(0);
		} finally {
			way.stop();
		}
	}, 60_000);

	test("sets Bun's variables without starting another process", async () => {
		const server = await startServe(environment("runtime", short));
		const started = environmentOf(server.pid);
		const said = runtimeEnvironment({}) ?? {};
		expect(started).toMatchObject(said);
		server.kill("SIGINT");
		expect(await server.exited).toBe(0);
	});

	test("exits 1 in each role and names HOST if HOST is another machine's address", async () => {
		const roles = ["all", "gateway", "console"];
		const hosts = ["256.1.1.1", "127.0.0.1:80", "name.invalid"];
		const apart = { GATEWAY_URL: "http://127.0.0.1:1", INTERNAL_SECRET: "s".repeat(32) };
		const ended = await Promise.all(
			roles.flatMap((role, at) =>
				(LONG ? hosts : hosts.slice(at, at + 1)).map(async (host) => {
					const own = environment(`host-${role}-${hosts.indexOf(host)}`, { ...apart, HOST: host });
					const { exitCode, stderr } = await runCli(["serve", "--role", role], own);
					return { exitCode, said: stderr.slice(stderr.indexOf("error: ")), host };
				}),
			),
		);
		for (const { exitCode, said, host } of ended)
			expect([exitCode, said]).toEqual([
				1,
				`error: the configuration has a problem:\n  HOST must be an address of this machine, or a name of one, without a port; got "${host}"\n`,
			]);
	}, 60_000);

	test("exits 1 with a reason for a used port, a wrong catalogue or configuration", async () => {
		const env = environment("bad");
		const taken = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
		const inUse = await runCli(["serve"], { ...env, PORT: String(taken.port) });
		taken.stop(true);
		expect(inUse.exitCode).toBe(1);
		expect(inUse.stderr).toContain("error: the port is in use");
		const catalogue = join(folder, "bad.yaml");
		writeFileSync(catalogue, "models:\n  - id: m\n    colour: red\n");
		for (const role of ["all", "gateway"]) {
			const { DATABASE_URL: _, ...ofItsOwn } = env;
			const dataDir = join(folder, `bad-${role}`);
			const bad = await runCli(["serve", "--role", role], { ...ofItsOwn, DATA_DIR: dataDir, CONFIG: catalogue });
			expect([bad.exitCode, bad.stderr.includes("colour")]).toEqual([1, true]);
			expect(existsSync(join(dataDir, "postgres"))).toBe(false);
		}
		for (const args of [["--role", ""], ...(LONG ? [["--role="], ["--role", " "]] : [])])
			expect(await runCli(["serve", ...args], { ...env, DATABASE_URL: "postgres://127.0.0.1:1/none" })).toMatchObject({
				exitCode: 1,
				stderr: expect.stringContaining("ROLE must be one of"),
			});
		expect((await runCli(["serve"], { ...env, LEASE_TTL_S: "1" })).exitCode).toBe(1);
	});
});
