import { describe, expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { silentLog } from "../../src/base/log.ts";
import { checkDatabase } from "../../src/cli/doctor/check-database.ts";
import { migrate, migratedUrl } from "../../src/db/migrate.ts";
import { withClient } from "../../src/db/new-client.ts";
import { runHere } from "../cli/run-here.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { ask } from "../support/chat.ts";
import { createEmptyDatabase, createTestDatabase } from "../support/database.ts";
import { HAS_PGBOUNCER, startPgbouncer } from "../support/pgbouncer.ts";
import { chatModel, withService } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";

describe.skipIf(!HAS_PGBOUNCER)("PgBouncer", async () => {
	if (!HAS_PGBOUNCER) return;
	const database = await createTestDatabase();
	const bare = new URL(database.url);
	bare.search = "";
	const session = await startPgbouncer(bare.href, "session");
	const shared = await startPgbouncer(bare.href, "transaction");
	const { url } = await migrate({ log: silentLog }, `${session.url}?options=${encodeURIComponent("-c work_mem=8MB")}`);
	const upstream = withUpstream();
	const models = chatModel({ url: upstream.url }).replace("[chat, completions]", "[chat, completions, batch]");
	const service = await withService({ database, env: { DATABASE_URL: url }, models });

	test("serves a gateway, its console and commands in session mode", async () => {
		const { secret } = await service.customer();
		expect((await service.post("/v1/chat/completions", secret, ask())).status).toBe(200);
		expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
		const env = { DATABASE_URL: session.url, DATA_DIR: temporaryFolder() };
		expect(await runHere(["account", "list"], env)).toMatchObject({ exitCode: 0, stderr: "" });
		expect((await checkDatabase({ workers: 1 }, session.url)).filter(({ what }) => /pool|setting/i.test(what))).toEqual(
			[],
		);
		expect(service.logged.filter((line) => line.error !== undefined || line.level === "error")).toEqual([]);
	});

	test("is skipped for the next host of the address if it leads to a standby", async () => {
		const standby = await createEmptyDatabase();
		atEnd(() => standby.drop());
		const name = new URL(standby.url).pathname.slice(1);
		await withClient(standby.url, async (client) => {
			await client.unsafe("create function pg_is_in_recovery() returns boolean language sql return true");
			await client.unsafe(`alter database ${name} set search_path = public, pg_catalog`);
		});
		const { port } = await startPgbouncer(standby.url, "session");
		const hosts = `127.0.0.1:${port},${bare.host}`;
		const env = { DATABASE_URL: bare.href.replace(bare.host, hosts), DATA_DIR: temporaryFolder() };
		expect(await runHere(["account", "list"], env)).toMatchObject({ exitCode: 0, stderr: "" });
	});

	test("is refused in transaction mode by service, doctor and commands alike", async () => {
		const reason = "A pooler hands sessions of the database around between transactions";
		await expect(migrate({ log: silentLog }, shared.url)).rejects.toThrow(reason);
		await expect(migratedUrl(shared.url)).rejects.toThrow(reason);
		const env = { DATABASE_URL: shared.url, DATA_DIR: temporaryFolder() };
		expect(await runHere(["account", "list"], env)).toMatchObject({
			exitCode: 1,
			stderr: expect.stringContaining(reason),
		});
		const broken = (await checkDatabase({ workers: 1 }, shared.url)).filter(({ what }) => what.startsWith(reason));
		expect(broken).toHaveLength(1);
	});

	test("checks certificates as libpq does", async () => {
		const folder = temporaryFolder();
		const [ca, other] = ["ca", "other"].map((name) => {
			openssl(
				`req -x509 -newkey rsa:2048 -nodes -keyout ${folder}/${name}.key -out ${folder}/${name}.pem -subj /CN=${name} -days 2`,
			);
			return `${folder}/${name}.pem`;
		});
		writeFileSync(`${folder}/names`, "subjectAltName=DNS:localhost");
		openssl(`req -newkey rsa:2048 -nodes -keyout ${folder}/key -out ${folder}/request -subj /CN=server`);
		openssl(
			`x509 -req -in ${folder}/request -CA ${ca} -CAkey ${folder}/ca.key -CAcreateserial -out ${folder}/cert -days 2 -extfile ${folder}/names`,
		);
		for (const path of [folder, `${folder}/key`]) chmodSync(path, 0o755);
		const settings = `client_tls_sslmode = require\nclient_tls_key_file = ${folder}/key\nclient_tls_cert_file = ${folder}/cert`;
		const { port } = await startPgbouncer(bare.href, "session", settings);
		const works = (host: string, query: string) =>
			withClient(`${bare.href.replace(bare.host, `${host}:${port}`)}?${query}`, async () => true).catch(() => false);
		const table = [
			["localhost", "sslmode=disable", false],
			["localhost", "sslmode=allow", true],
			["localhost", "sslmode=prefer", true],
			["localhost", "sslmode=require&channel_binding=prefer", true],
			["localhost", `sslmode=require&sslrootcert=${other}`, false],
			["localhost", `sslmode=verify-full&sslrootcert=${ca}`, true],
			["127.0.0.1", `sslmode=verify-full&sslrootcert=${ca}`, false],
			["127.0.0.1", `sslmode=verify-ca&sslrootcert=${ca}`, true],
			["127.0.0.1", `sslmode=verify-ca&sslrootcert=${other}`, false],
			["localhost", "sslmode=verify-full", false],
		] as const;
		for (const [host, query, expected] of table)
			expect([host, query, await works(host, query)]).toEqual([host, query, expected]);
	});
});

function openssl(words: string): void {
	const { success, stderr } = Bun.spawnSync(["openssl", ...words.split(" ")]);
	if (!success) throw new Error(stderr.toString());
}
