import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runtimeEnvironment } from "../../src/cli/runtime-environment.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { PROGRAM, runCli } from "./run-cli.ts";

const CATALOGUE = `models:
  - id: m
    kind: chat
    context_length: 1000
    max_output_tokens: 100
    rates: { input: '1', output: '2' }
    upstreams:
      - { url: 'http://127.0.0.1:1/v1', model: m, dialect: openai }
`;

const database = await withDatabase();
const folder = temporaryFolder();
const config = join(folder, "tollgate.yaml");
writeFileSync(config, CATALOGUE);
const env = {
	PORT: "0",
	DATABASE_URL: database.url,
	DATA_DIR: join(folder, "data"),
	CONFIG: config,
	DRAIN_S: "2",
	LEASE_TTL_S: "5",
};

interface Started {
	readonly url: string;
	readonly pid: number;
	kill(signal: NodeJS.Signals): void;
	logged(message: string): Promise<Record<string, unknown>>;
	exited: Promise<number>;
}

async function start(more: Record<string, string> = {}): Promise<Started> {
	const child = Bun.spawn([...PROGRAM, "serve"], {
		cwd: folder,
		env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...env, ...more },
		stdout: "ignore",
		stderr: "pipe",
	});
	const lines: Record<string, unknown>[] = [];
	const waiting: { message: string; resolve: (line: Record<string, unknown>) => void }[] = [];
	void (async () => {
		let rest = "";
		const decoder = new TextDecoder();
		for await (const chunk of child.stderr) {
			const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
			rest = parts.pop() ?? "";
			for (const part of parts) {
				if (!part.startsWith("{")) continue;
				const line = JSON.parse(part) as Record<string, unknown>;
				lines.push(line);
				for (const one of waiting) if (one.message === line.message) one.resolve(line);
			}
		}
	})();
	const logged = (message: string) => {
		const found = lines.find((line) => line.message === message);
		if (found !== undefined) return Promise.resolve(found);
		return new Promise<Record<string, unknown>>((resolve) => waiting.push({ message, resolve }));
	};
	const { url } = await logged("listening");
	return { url: String(url), pid: child.pid, kill: (signal) => child.kill(signal), logged, exited: child.exited };
}

describe("serve", () => {
	test("serves until SIGTERM, applies commands, leaves the cluster and exits 0", async () => {
		const server = await start();
		expect((await fetch(`${server.url}/readyz`)).status).toBe(200);

		const { id: account } = (await runCli(["account", "create", "--email", "s@example.com", "--json"], env)).json<{
			id: string;
		}>();
		const key = (await runCli(["key", "create", "--account", account, "--name", "k", "--json"], env)).json<{
			id: string;
			secret: string;
		}>();
		const models = () => fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${key.secret}` } });
		expect((await models()).status).toBe(200);

		const revoked = await runCli(["key", "revoke", key.id, "--json"], env);
		expect(revoked.json<{ effective: boolean; elapsed_ms: number }>()).toMatchObject({ effective: true });
		// The running instance applies the revocation, so the command does not wait for its lease.
		expect(revoked.json<{ elapsed_ms: number }>().elapsed_ms).toBeLessThan(5_000);
		const refused = await models();
		expect(refused.status).toBe(401);
		expect(((await refused.json()) as { error: { code: string } }).error.code).toBe("api_key_revoked");

		const { data } = (await runCli(["instance", "list", "--json"], env)).json<{ data: object[] }>();
		expect(data).toMatchObject([{ state: "live" }]);
		server.kill("SIGTERM");
		expect(await server.exited).toBe(0);
		expect((await runCli(["instance", "list", "--json"], env)).json<{ data: object[] }>().data).toEqual([]);
	});

	test("exits 0 without the database and says that its journal must be kept", async () => {
		const { hostname, port } = new URL(database.url);
		const way = startTcpProxy({ hostname, port: Number(port) });
		try {
			const away = Object.assign(new URL(database.url), { port: String(way.port) }).href;
			const server = await start({ DATABASE_URL: away, DATA_DIR: join(temporaryFolder(), "data") });
			await server.logged("all processes are ready");
			way.cut();
			server.kill("SIGTERM");
			await server.logged(
				"some settlements are not in the database: the journal keeps them for the next start on this DATA_DIR",
			);
			expect(await server.exited).toBe(0);
		} finally {
			way.stop();
		}
	}, 60_000);

	test("sets Bun's variables without starting another process", async () => {
		const server = await start({ ROLE: "gateway" });
		const environment = await Bun.file(`/proc/${server.pid}/environ`).text();
		const said = runtimeEnvironment({}) ?? {};
		expect(environment.split("\0")).toEqual(
			expect.arrayContaining(Object.entries(said).map(([name, value]) => `${name}=${value}`)),
		);
		server.kill("SIGINT");
		expect(await server.exited).toBe(0);
	});

	test("exits 1 in each role for a HOST of another machine, and names it", async () => {
		const roles = ["all", "gateway", "console"];
		const hosts = ["256.1.1.1", "127.0.0.1:80", "name.invalid"];
		const apart = { ...env, GATEWAY_URL: "http://127.0.0.1:1", INTERNAL_SECRET: "s".repeat(32) };
		const ended = await Promise.all(
			roles.flatMap((role, at) =>
				(LONG ? hosts : hosts.slice(at, at + 1)).map(async (host) => {
					const own = { HOST: host, PORT: "0", DATA_DIR: join(folder, `host-${role}-${hosts.indexOf(host)}`) };
					const { exitCode, stderr } = await runCli(["serve", "--role", role], { ...apart, ...own });
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

	test("exits 1 with a reason for a used port, wrong catalogue or configuration", async () => {
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
