/** A gateway and a console that are started separately, as on two machines, and share only a secret. */
import { expect, test } from "bun:test";
import { scryptSync } from "node:crypto";
import { quietPort, startServe } from "../chaos/serve-process.ts";
import { operator, PASSWORD, PERSON_ENV, signedUp, topUp } from "../console/person.ts";
import { atEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { openRaw, parseRaw } from "../support/raw-http.ts";
import { requestsTo } from "../support/requests.ts";
import { serviceFolder } from "../support/service-folder.ts";
import { withUpstream } from "../support/upstream-server.ts";

const INTERNAL = "i".repeat(40);
const ask = { model: "test-model", messages: [{ role: "user", content: "one two three" }] };

const database = await withDatabase();
const upstream = withUpstream("vllm");
const { environment } = serviceFolder(database, upstream.url);

async function start(role: "gateway" | "console", env: Record<string, string> = {}) {
	const name = `${role}-${crypto.randomUUID().slice(0, 8)}`;
	const { CONFIG, CONSOLE_SECRET, INSTANCE_ID: _, ...both } = environment(name);
	const own = role === "gateway" ? { CONFIG } : { CONSOLE_SECRET };
	const more = { ROLE: role, PORT: String(quietPort()), LEASE_TTL_S: "5", DRAIN_S: "1", ...PERSON_ENV };
	const served = await startServe({ ...both, ...(own as Record<string, string>), ...more, ...env });
	atEnd(async () => {
		served.kill("SIGTERM");
		expect(await served.exited).toBe(0);
	});
	return served;
}

const joined = { INTERNAL_SECRET: INTERNAL, TRUSTED_PROXIES: "192.0.2.1" };
const gateway = await start("gateway", joined);
const people = await start("console", { ...joined, GATEWAY_URL: gateway.url });
const { url } = people;
const service = { url, db: database };
const customer = await signedUp(service);
await topUp(customer, await operator(service));
const { key, secret } = (await customer.send("POST", "/api/console/keys", { name: "k" })).body;
const play = `/api/console/playground/chat?key=${key.id}`;

test("the console shows what the gateway serves, and its playground works", async () => {
	const { body } = await customer.get("/api/console/public/models");
	expect(body.items).toMatchObject([{ id: "test-model", status: "connected", rates: { input: 1_000_000 } }]);
	expect(JSON.stringify(body)).not.toContain("127.0.0.1");
	const answer = await customer.send("POST", play, ask);
	expect([answer.status, answer.body.choices?.[0].message.content]).toEqual([200, "echo: one two three"]);
});

test("the management interface is only on the console, and the gateway's 404 says so", async () => {
	const at = async (url: string) => {
		const response = await fetch(`${url}/v1/management/accounts`);
		return [response.status, (await response.json()).error];
	};
	expect(await at(url)).toMatchObject([401, { code: "missing_api_key" }]);
	expect(await at(gateway.url)).toMatchObject([404, { code: "not_found" }]);
	expect((await at(gateway.url))[1].message).toContain("console");
});

test("a gateway's error names the missing /v1 in a base URL", async () => {
	const answer = await fetch(`${gateway.url}/chat/completions`, { method: "POST", body: "{}" });
	expect([answer.status, (await answer.json()).error.message]).toEqual([404, expect.stringContaining("ends with /v1")]);
});

test("each plane serves only its own paths", async () => {
	expect((await requestsTo(gateway.url).chat(secret, ask)).status).toBe(200);
	expect((await requestsTo(url).chat(secret, ask)).status).toBe(404);
	for (const path of ["/", "/overview", "/api/console/me", "/assets/icon.svg"]) {
		const answer = await fetch(`${gateway.url}${path}`);
		expect([path, answer.status, (await answer.json()).error.code]).toEqual([path, 404, "not_found"]);
	}
	for (const at of [gateway.url, url]) {
		expect((await fetch(`${at}/livez`)).status).toBe(200);
		expect((await fetch(`${at}/readyz`)).status).toBe(200);
	}
});

test("the log warns once of an unknown proxy, and names the setting", async () => {
	for (const [served, path] of [
		[gateway, "/v1/models"],
		[people, "/v1/management/accounts"],
	] as const) {
		const headers = { authorization: "Bearer wrong", "x-forwarded-for": "198.51.100.7" };
		for (const _ of [1, 2]) expect((await fetch(`${served.url}${path}`, { headers })).status).toBe(401);
		const line = await served.logged(({ message }) => message.includes("TRUSTED_PROXIES"), "the unknown proxy");
		expect(line).toMatchObject({ level: "warn", proxy: "127.0.0.1" });
		expect(served.lines.filter(({ message }) => message.includes("TRUSTED_PROXIES"))).toHaveLength(1);
	}
});

test("an HTTP/1.0 probe without Host is answered, other requests without it are not", async () => {
	const ask = async (at: string, path: string, more = "") =>
		parseRaw(await (await openRaw(at, `GET ${path} HTTP/1.0\r\n${more}\r\n`)).ended());
	for (const at of [gateway.url, url]) {
		for (const path of ["/livez", "/livez?from=balancer"])
			expect(await ask(at, path)).toMatchObject({ status: 200, body: "ok\n" });
		const ready = await ask(at, "/readyz");
		expect([ready.status, JSON.parse(ready.body).status]).toEqual([200, "ready"]);
		expect((await ask(at, "/readyz", "Host: a b\r\n")).status).toBe(400);
		expect((await ask(at, "/v1/models")).status).toBe(400);
	}
});

test("a password is stored as scrypt with a separate salt and 32 MB per guess", async () => {
	const rows = await database.sql<{ password: string }[]>`select password from auth_account where password is not null`;
	expect(rows.length).toBe(2);
	for (const { password } of rows) {
		const [salt = "", kept] = password.split(":");
		const cost = { N: 16_384, r: 16, p: 1, maxmem: 64 * 1024 * 1024 };
		expect([salt.length, scryptSync(PASSWORD, salt, 64, cost).toString("hex")]).toEqual([32, kept as string]);
	}
	expect(new Set(rows.map(({ password }) => password)).size).toBe(2);
});

test("a console with a wrong secret or no gateway address gets no chat answer", async () => {
	for (const [env, status] of [
		[{ INTERNAL_SECRET: "j".repeat(40), GATEWAY_URL: gateway.url }, 403],
		[{}, 503],
		...(LONG ? [[{ INTERNAL_SECRET: INTERNAL, GATEWAY_URL: `http://127.0.0.1:${quietPort()}` }, 503] as const] : []),
	] as const) {
		const other = await start("console", env);
		const refused = await customer.send("POST", `${other.url}${play}`, ask, { origin: other.url });
		expect([env, refused.status]).toEqual([env, status]);
	}
	const calls = upstream.requests.length;
	// A gateway without the secret accepts no token, not even a correctly signed one.
	const closed = await start("gateway");
	const other = await start("console", { INTERNAL_SECRET: INTERNAL, GATEWAY_URL: closed.url });
	expect((await customer.send("POST", `${other.url}${play}`, ask, { origin: other.url })).status).toBe(401);
	expect(upstream.requests.length).toBe(calls);
});
