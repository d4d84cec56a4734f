/** A service whose log cannot be written continues to run; a command whose output cannot be written fails. */
import { describe, expect, test } from "bun:test";
import { closeSync, existsSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createAccount } from "../../src/keys/account-admin.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { quietPort } from "../chaos/serve-process.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { childrenWithRole } from "../support/processes.ts";
import { chatModel } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { PROGRAM } from "./run-cli.ts";
import { runHere } from "./run-here.ts";

const FULL = "/dev/full";
const SECRET = "s".repeat(40);

const database = await withDatabase();
const upstream = withUpstream("vllm");

function start(name: string, stderr: number | "pipe") {
	const folder = temporaryFolder();
	const config = join(folder, "tollgate.yaml");
	const port = quietPort();
	const serve = (models: readonly string[]) =>
		writeFileSync(config, `models:\n${models.map((id) => chatModel({ id, url: upstream.url })).join("\n")}\n`);
	serve(["first"]);
	const child = Bun.spawn([...PROGRAM, "serve"], {
		cwd: folder,
		env: {
			PATH: process.env.PATH ?? "",
			HOST: "127.0.0.1",
			PORT: String(port),
			DATABASE_URL: database.url,
			DATA_DIR: join(folder, "data"),
			CONFIG: config,
			INSTANCE_ID: name,
			KEY_PEPPER: SECRET,
			CONSOLE_SECRET: SECRET,
			DRAIN_S: "1",
		},
		stdio: ["ignore", "ignore", stderr],
	});
	atEnd(async () => {
		child.kill("SIGKILL");
		await child.exited;
	});
	const url = `http://127.0.0.1:${port}`;
	const answers = async (path: string, holds: (text: string) => boolean) => {
		try {
			const response = await fetch(`${url}${path}`);
			return holds(await response.text()) && response.ok;
		} catch {
			return false;
		}
	};
	return {
		child,
		serve,
		gateways: () => childrenWithRole(child.pid, "gateway"),
		ready: () => waitFor(() => answers("/readyz", () => true), "it to be ready", 60_000),
		serves: (model: string) =>
			waitFor(() => answers("/status", (text) => text.includes(model)), `it to serve ${model}`),
	};
}

/** Changes the catalogue twice, which the gateway logs; expects the process to keep serving and to stop cleanly. */
async function speaksAndLives(service: ReturnType<typeof start>): Promise<void> {
	const before = service.gateways();
	for (const model of ["second", "third"]) {
		service.serve(["first", model]);
		service.child.kill("SIGHUP");
		await service.serves(model);
	}
	expect([before.length, service.gateways()]).toEqual([1, before]);
	service.child.kill("SIGTERM");
	expect(await service.child.exited).toBe(0);
}

// In the short form the next test, a log without a reader, covers the same code.
test.if(LONG && existsSync(FULL))(
	"a service whose log is on a full disk starts, serves and stops",
	async () => {
		const full = openSync(FULL, "w");
		const service = start("full", full);
		closeSync(full);
		await service.ready();
		await speaksAndLives(service);
	},
	120_000,
);

test("a service continues after the reader of its log has ended", async () => {
	const service = start("gone", "pipe");
	await service.ready();
	await (service.child.stderr as ReadableStream<Uint8Array>).cancel();
	await speaksAndLives(service);
}, 120_000);

const KEYS = { DATABASE_URL: database.url, KEY_PEPPER: SECRET, CONSOLE_SECRET: SECRET };

/** Runs a command through a shell script; resolves with its output, its errors and its exit code. */
async function runIn(script: string, ...args: readonly string[]) {
	const child = Bun.spawn(["sh", "-c", script, "sh", ...PROGRAM, ...args], {
		env: { PATH: process.env.PATH ?? "", ...KEYS },
		stdio: ["ignore", "pipe", "pipe"],
	});
	const [out, said] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
	return { out, said, exitCode: await child.exited };
}

describe.skipIf(!existsSync(FULL))("output to a full disk", () => {
	const lost = (...args: readonly string[]) => runIn('exec "$@" >/dev/full', ...args);

	test("makes a command report that its output is incomplete and exit 1", async () => {
		const said = "error: the output could not be written (ENOSPC), but the command succeeded\n";
		expect(await lost("help")).toEqual({ out: "", said, exitCode: 1 });
	});

	test("makes a command that lost a new key's secret name the key to revoke", async () => {
		const { said, exitCode } = await lost("management-key", "create", "--name", "lost", "--scopes", "all", "--json");
		const [made] = await database.sql`select id from management_key where name = 'lost'`;
		expect(JSON.parse(said).error).toEqual({
			code: "file",
			message: `the output could not be written (ENOSPC), but the command succeeded; revoke ${made?.id}, because its secret is lost`,
		});
		expect(exitCode).toBe(1);
	});

	test("makes a rotation that lost the secret say how to get the secret again", async () => {
		const { id: account } = await createAccount(database.statements, { email: "r@example.com", vouched: true });
		const maker = { statements: database.statements, digest: createDigest(SECRET), serviceName: "service" };
		const { id } = await createKey(maker, account, { name: "k" });
		// An instance that never applies the change makes the command fail for a second reason.
		await database.sql`
			insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until)
			values ('away', 1, 1, 'live', 600000, now() + interval '600 s')`;
		const { said, exitCode } = await lost("key", "rotate", id, "--grace", "0", "--timeout", "0");
		expect(exitCode).toBe(1);
		const [, token = ""] = /could not be written.*`tollgate key rotate \S+ --token (\S+)`/.exec(said) ?? [];
		const again = await runHere(["key", "rotate", id, "--token", token, "--no-wait", "--json"], KEYS);
		const [kept] = await database.sql`select replaced_by from api_key where id = ${id}`;
		expect(again.json()).toMatchObject({ id: kept?.replaced_by, secret: expect.stringMatching(/^sk_service_/) });
		await database.sql`delete from instance_beat`;
	}, 20_000);
});

test("a command exits 0 if the reader of its output stops after the first line", async () => {
	expect(await runIn('"$@" | head -1; exit "$?"', "help")).toMatchObject({ said: "", exitCode: 0 });
});

test("a command exits 1 if the reader of its output stops before the first byte", async () => {
	const child = Bun.spawn([...PROGRAM, "help"], {
		env: { PATH: process.env.PATH ?? "" },
		stdio: ["ignore", "pipe", "pipe"],
	});
	await child.stdout.cancel();
	expect(await new Response(child.stderr).text()).toStartWith("error: the output could not be written (EPIPE)");
	expect(await child.exited).toBe(1);
});

test("a slow reader gets all of a command's long output", async () => {
	await database.sql`
		insert into account (id, email, name)
		select 'acc_' || md5(n::text), n || '@example.com', repeat('x', 200) from generate_series(1, 1000) n`;
	const list = ["account", "list", "--limit", "1000", "--json"];
	const { out, said } = await runIn('{ "$@"; echo "exit code $?" >&2; } | cat', ...list);
	expect([JSON.parse(out).data.length, said]).toEqual([1000, "exit code 0\n"]);
});
