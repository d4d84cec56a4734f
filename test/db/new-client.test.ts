import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { connect, createServer, type ListenOptions } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { libc } from "../../src/base/libc.ts";
import { createConnector, withClient } from "../../src/db/new-client.ts";
import { isConnectionLost } from "../../src/db/outage.ts";
import { addUrlSetting } from "../../src/db/session-settings.ts";
import { runHere } from "../cli/run-here.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { createEmptyDatabase, withDatabase } from "../support/database.ts";
import { withTcpProxy } from "../support/tcp-proxy.ts";
import { waitFor } from "../support/wait.ts";

const database = await withDatabase();
const server = new URL(database.url);
const folder = temporaryFolder();
const HAS_IPV6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));

/** Makes the database's server available at another address. Returns its port, or undefined if that fails. */
async function alsoAt(place: ListenOptions): Promise<number> {
	const relay = createServer((from) => {
		const to = connect(Number(server.port), server.hostname);
		for (const [one, other] of [
			[from, to],
			[to, from],
		] as const)
			one.pipe(other).on("error", () => one.destroy());
	});
	await new Promise<void>((resolve) => relay.listen(place, resolve));
	atEnd(() => void relay.close());
	const address = relay.address();
	return typeof address === "object" && address !== null ? address.port : 0;
}

/** The database's URL with another host and additional query parameters. */
const addressAt = (host: string, query: Record<string, string> = {}) =>
	Object.entries(query).reduce(
		(to, [name, value]) => addUrlSetting(to, name, value),
		database.url.replace(server.host, host),
	);

async function answersAt(url: string): Promise<void> {
	const { ready, end } = createConnector(addUrlSetting(url, "search_path", "one, two"), {
		application_name: "somebody",
	})();
	try {
		const [row] = await (await ready)`
			select current_database() as name, current_setting('search_path') as path, current_setting('application_name') as who`;
		expect({ ...row }).toEqual({ name: server.pathname.slice(1), path: "one, two", who: "somebody" });
	} finally {
		await end({ timeout: 1 });
	}
	const env = { DATABASE_URL: url, DATA_DIR: folder };
	expect(await runHere(["account", "list"], env)).toMatchObject({ exitCode: 0, stderr: "" });
}

test("the database client connects to a host name and to an IPv4 address", async () => {
	await answersAt(database.url);
	await answersAt(addressAt(`localhost:${server.port}`));
});

test("the database client tries the host that answered last first, then the others", async () => {
	const env = { DATABASE_URL: addressAt(`127.0.0.1:1,${server.host}`), DATA_DIR: folder };
	expect(await runHere(["account", "list"], env)).toMatchObject({ exitCode: 0, stderr: "" });
	const proxies = [server, server].map(({ hostname, port }) => withTcpProxy({ hostname, port: Number(port) }));
	const ports = proxies.map(({ port }) => port);
	const open = createConnector(addressAt("localhost", { host: "127.0.0.1,127.0.0.1", port: ports.join(",") }));
	const asked = async () => {
		const { ready, end } = open();
		await (await ready)`select 1`;
		await end({ timeout: 1 });
		return proxies.map((proxy) => proxy.accepted());
	};
	expect(await asked()).toEqual([1, 0]);
	proxies[0]?.cut();
	expect(await asked()).toEqual([1, 1]);
	proxies[0]?.restore();
	expect(await asked()).toEqual([1, 2]);
	proxies[1]?.freeze();
	const { ready, end } = open();
	await waitFor(() => proxies[1]?.accepted() === 3, "an attempt at the silent host");
	await end({ timeout: 0 });
	await ready.catch(() => {});
	expect(await asked()).toEqual([2, 3]);
});

test("the database client reports a host that refuses connections before a standby", async () => {
	const standby = await createEmptyDatabase();
	atEnd(() => standby.drop());
	const { pathname, port } = new URL(standby.url);
	await withClient(standby.url, async (client) => {
		await client.unsafe("create function pg_is_in_recovery() returns boolean language sql return true");
		await client.unsafe(`alter database ${pathname.slice(1)} set search_path = public, pg_catalog`);
	});
	const opened = (ports: string) => {
		const two = addUrlSetting(addUrlSetting(standby.url, "host", "127.0.0.1,127.0.0.1"), "port", ports);
		return withClient(two, async () => "opened");
	};
	await expect(opened(`${port},${port}`)).rejects.toThrow("leads to a standby");
	for (const ports of [`1,${port}`, `${port},1`]) await expect(opened(ports)).rejects.toThrow("ECONNREFUSED");
});

test("the database client takes host and port from the query of the address", async () => {
	await answersAt(addressAt("nowhere.invalid:1", { host: server.hostname, port: server.port }));
	await answersAt(addressAt("127.0.0.1:1", { port: server.port }));
});

test.skipIf(!HAS_IPV6)("the database client connects to an IPv6 address", async () => {
	const port = await alsoAt({ host: "::1", port: 0 });
	await answersAt(addressAt(`[::1]:${port}`));
	await answersAt(addressAt("localhost:1", { host: "::1", port: String(port) }));
});

test("the database client connects to a socket folder in the query or as the host", async () => {
	await alsoAt({ path: join(folder, ".s.PGSQL.7777") });
	await answersAt(addressAt("localhost:7777", { host: folder }));
	await answersAt(addressAt("localhost", { host: folder, port: "7777" }));
	await answersAt(addressAt(`${encodeURIComponent(folder)}:7777`));
	const env = { DATABASE_URL: addressAt("localhost:7778", { host: folder }), DATA_DIR: folder };
	const { exitCode, stderr } = await runHere(["account", "list"], env);
	expect([exitCode, stderr]).toEqual([1, expect.stringContaining("correct the socket folder and the port")]);
});

test("the database client accepts spaces around the address and a user in the query", async () => {
	const spaces = [
		` ${database.url}`,
		`${database.url} `,
		`${database.url}\r\n`,
		`${addUrlSetting(database.url, "application_name", "x")} `,
	];
	const { username, password, pathname, port } = server;
	const queries = [
		`postgres://${server.host}${pathname}?user=${username}&password=${password}`,
		addUrlSetting(database.url, "target_session_attrs", "any"),
		addUrlSetting(database.url, "target_session_attrs", "read-write"),
		`postgres://${username}:${password}@${pathname}?host=${server.hostname}&port=${port}`,
	];
	for (const url of [...spaces, ...queries]) {
		const env = { DATABASE_URL: url, DATA_DIR: folder };
		expect([url, await runHere(["account", "list"], env)]).toMatchObject([url, { exitCode: 0, stderr: "" }]);
	}
});

test("the database client decodes user, password and database name", async () => {
	const name = `${server.pathname.slice(1)} 50%`;
	const client = database.sql;
	await client.unsafe(`create role "a@b" login superuser password 'one@two,three@four'`);
	await client.unsafe(`create database "${name}"`);
	atEnd(async () => {
		await client.unsafe(`drop database "${name}" with (force)`);
		await client.unsafe('drop role "a@b"');
	});
	const at = `${server.host}/${encodeURIComponent(name)}`;
	for (const url of [`postgres://a%40b:one@two,three@four@${at}`, `postgres://a%40b:one%40two,three%40four@${at}`]) {
		const [row] = await withClient(url, async (other) => other`select current_database() as name, current_user as who`);
		expect({ ...row }).toEqual({ name, who: "a@b" });
	}
});

test("the database client shows no part of a password with special characters", async () => {
	const secret = ["hunter2", "hunter3"];
	for (const sign of ["/", "?", "#", "@", "@,", ",@", "@/", "@?", "@#"]) {
		const passwords = [secret.join(sign), `12${sign}${secret.join("")}`, `${secret.join(sign)},${secret.join(sign)}`];
		for (const password of passwords) {
			const env = { DATABASE_URL: `postgres://user:${password}@nowhere.invalid/name`, DATA_DIR: folder };
			for (const command of [["account", "list"], ["doctor"]]) {
				const { exitCode, stdout, stderr } = await runHere(command, env);
				expect([password, exitCode, stdout + stderr]).toEqual([password, 1, expect.not.stringContaining("hunter")]);
			}
		}
	}
}, 60_000);

test("the database client's error names the wrong host, database, port or sslmode", async () => {
	const wrong = {
		"postgres://u:hunter2@%zz/db": "a % in its host",
		"postgres://u:hunter2@h/%zz": "a % in its host or its database",
		"postgres://u:hunter2@h/db?port=99999": "a port that is no number",
		"postgres://u:hunter2@h/db?port=x": "a port that is no number",
		"postgres://u:hunter2@h/db?sslmode=bogus": 'as its sslmode; got "bogus"',
		"postgres://u:x@h/db?sslmode=require?password=hunter2": "as its sslmode\n",
		"postgres://u:x@h/db#hunter2": "has a # in it",
		"postgres://u:x@h/db?a=b#": "has a # in it",
		"postgres://u:hunter2@/db?host=one,two&port=1,2,3": "has 3 ports for 2 hosts",
		"postgres://u:hunter2@a:1,b:99999/db": "a port that is no number",
		"postgres://u:hunter2@h/db?sslmode=require&channel_binding=require": "requires channel_binding, which is not",
		"postgres://u:hunter2@h/db?target_session_attrs=standby": "target_session_attrs that is not supported",
		"postgres://u:hunter2@h/db?sslcert=hunter2": "the parameter sslcert, which is not supported",
		"postgres://u:hunter2@h/db?sslrootcert=/nowhere/hunter2": "an sslrootcert that is no readable file",
		"postgres://u:hunter2@h/db?sslrootcert=system&sslmode=require": "sslmode=verify-full with sslrootcert=system",
		"postgres://u:hunter2@h/db?keepalives_idle=hunter2": "a whole number as its keepalives_idle",
		"postgres://u:hunter2@h/db?options=-f%20hunter2": "options other than `-c name=value`",
		'"postgres://u:hunter2@h/db"': "must not be in quotation marks",
		"'postgres://u:hunter2@h/db'": "must not be in quotation marks",
	};
	for (const [url, said] of Object.entries(wrong)) {
		const { exitCode, stderr } = await runHere(["account", "list"], { DATABASE_URL: url, DATA_DIR: folder });
		expect([url, exitCode, stderr]).toEqual([url, 1, expect.stringContaining(said)]);
		expect(stderr).toContain("DATABASE_URL ");
		expect(stderr).not.toContain("hunter2");
	}
});

test("the database client refuses an invalid address without showing its password", async () => {
	for (const host of ["a:1,b c:2", "a:99999", "a:x", "[::1", ""]) {
		const env = { DATABASE_URL: `postgres://user:hunter2@${host}/name`, DATA_DIR: folder };
		const { exitCode, stderr } = await runHere(["account", "list"], env);
		expect([host, exitCode, stderr]).toEqual([host, 1, expect.stringContaining("is not a valid address: ")]);
		expect(stderr).not.toContain("hunter2");
	}
});

test("the database client connects no more if it is ended while it waits to retry", async () => {
	const at = await alsoAt({ host: "127.0.0.1", port: 0 });
	const url = addressAt(`127.0.0.1:${at}`);
	let made = 0;
	const pausing = Promise.withResolvers<void>();
	const open = createConnector(url, { application_name: "ends in its pause" });
	const paused = (pauseMs: () => number) => open({}, { pauseMs, made: () => void made++ });
	const first = paused(() => {
		pausing.resolve();
		return 20;
	});
	const lost = first.ready.catch((error) => error);
	await pausing.promise;
	// The pause of this client ends after the first client's.
	const next = paused(() => 60);
	await first.end({ timeout: 0 });
	expect(isConnectionLost(await lost)).toBe(true);
	const client = await next.ready;
	expect(made).toBe(1);
	const [row] =
		await client`select count(*)::int as open from pg_stat_activity where application_name = 'ends in its pause'`;
	expect(row?.open).toBe(1);
	await next.end({ timeout: 1 });
});

test("the database client sends no queries itself; only its module imports the driver", async () => {
	expect(await withClient(database.url, async ({ options }) => options.fetch_types)).toBe(false);
	const makers: string[] = [];
	const source = join(import.meta.dir, "../../src");
	for (const path of new Bun.Glob("**/*.{ts,tsx}").scanSync(source)) {
		const text = await Bun.file(join(source, path)).text();
		if (/^import postgres\b.* from "postgres"|import\("postgres"\)/m.test(text)) makers.push(path);
	}
	expect(makers).toEqual(["db/new-client.ts"]);
});

const shown = (url: string, name: string) =>
	withClient(url, async (client) => (await client.unsafe(`select current_setting('${name}') as value`))[0]?.value);

test.each([
	["options", "-c search_path=a --work-mem=7MB -cwork_mem=8MB", "work_mem", "8MB"],
	["options", '-c search_path="a\\ b",c', "search_path", '"a b",c'],
	["application_name", "it's \\ mine", "application_name", "it's \\ mine"],
	["fallback_application_name", "other", "application_name", "other"],
	["DateStyle", "SQL, DMY", "DateStyle", "SQL, DMY"],
])("applies %s=%s as libpq does", async (name, value, setting, expected) => {
	expect(await shown(addUrlSetting(database.url.replace(/\?.*/, ""), name, value), setting)).toBe(expected);
});

test.skipIf(process.platform !== "linux")("the client sets the socket's keepalives", async () => {
	const wanted = { keepalives_idle: 31, keepalives_interval: 7, keepalives_count: 3, tcp_user_timeout: 9_000 };
	const url = Object.entries(wanted).reduce(
		(to, [name, value]) => addUrlSetting(to, name, String(value)),
		database.url,
	);
	const ofSockets = await withClient(url, async () =>
		readdirSync("/proc/self/fd").map((fd) =>
			// Numbers of TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT and TCP_USER_TIMEOUT.
			[4, 5, 6, 18].map((option) => {
				const value = new Int32Array(1);
				libc().getsockopt(Number(fd), 6, option, value, Uint32Array.of(4));
				return value[0];
			}),
		),
	);
	expect(ofSockets).toContainEqual(Object.values(wanted));
});
