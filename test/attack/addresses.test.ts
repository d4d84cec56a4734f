import { expect, test } from "bun:test";
import { ask } from "../support/chat.ts";
import { openRaw, parseRaw } from "../support/raw-http.ts";
import { withChat } from "../support/service.ts";

/** Invalid addresses, hosts and parameters are client errors, never a 5xx. */

const { service } = await withChat();
const { secret } = await service.customer();

const PATHS = [
	"/",
	"/v1/models",
	"/v1/models/x",
	"/v1/usage/x",
	"/v1/nothing",
	"/v1/files",
	"/status",
	"/livez",
	"/readyz",
	"/metrics",
	"/api/console/me",
	"/api/auth/get-session",
	"/api/stripe/webhook",
	"/keys",
];
const HOSTS = [
	"a b",
	"[",
	"[::1",
	"http://x/",
	"a:99999",
	"a:b",
	"%00",
	"x/y?z",
	"",
	"a#b",
	"é",
	"..",
	"a..b",
	"@",
	":80",
	"x".repeat(2_000),
];

async function statusOf(method: string, target: string, host: string, more = ""): Promise<number> {
	const head = `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${secret}\r\nConnection: close\r\n${more}`;
	const client = await openRaw(service.url, `${head}\r\n`);
	return parseRaw(await client.ended()).status;
}

test("an invalid Host header gets 400 on every path", async () => {
	const broken: unknown[] = [];
	for (const host of HOSTS) {
		const statuses = await Promise.all(PATHS.map((path) => statusOf("GET", path, host)));
		for (const [at, status] of statuses.entries())
			if (status >= 500 && status !== 503) broken.push([host, PATHS[at], status]);
	}
	expect(broken).toEqual([]);
	expect(await statusOf("GET", "/livez", "[")).toBe(400);
	expect(await statusOf("GET", "/livez", "any.name.example:8080")).toBe(200);
});

test("a Host header with an IPv6 zone gets 400 with the reason", async () => {
	for (const host of ["[fe80::1%25eth0]:8080", "[fe80::1%eth0]"]) {
		const client = await openRaw(service.url, `GET /v1/models HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
		const { status, body } = parseRaw(await client.ended());
		expect([host, status, JSON.parse(body).error.message]).toEqual([
			host,
			400,
			expect.stringContaining("no zone (%…)"),
		]);
	}
	expect(await statusOf("GET", "/v1/models", "[fe80::1]:8080")).toBe(200);
});

test("a malformed path in a URL never gets a 5xx", async () => {
	const signs = ["%00", "a%00b", "%ff%fe", "%", "%zz", "%e2%82", "%ed%a0%80", "..%2f..%2fx", "//", "a;b", "%2500", "*"];
	const broken: unknown[] = [];
	for (const sign of signs) {
		const targets = [
			`/v1/models/${sign}`,
			`/v1/usage/${sign}`,
			`/v1/${sign}`,
			`/${sign}`,
			`/api/console/${sign}`,
			`/api/console/usage?account=${sign}`,
			`/api/auth/verify-email?token=${sign}`,
			`/status?at=${sign}`,
		];
		for (const target of targets) {
			const status = await statusOf("GET", target, "localhost");
			if (status >= 500 && status !== 503) broken.push([target, status]);
		}
	}
	expect(broken).toEqual([]);
});

test("a NUL character in a field that is stored gets 400 without a charge", async () => {
	for (const change of [
		{ model: "a\u0000b" },
		{ user: "\u0000" },
		{ messages: [{ role: "user", content: "\u0000", name: "\u0000" }] },
	]) {
		const response = await service.post("/v1/chat/completions", secret, ask("hi", change));
		expect(response.status).toBeLessThan(500);
		await response.text();
	}
	const people = await fetch(`${service.url}/api/auth/sign-in/email`, {
		method: "POST",
		headers: { "content-type": "application/json", origin: service.url },
		body: JSON.stringify({ email: "a\u0000@example.com", password: "\u0000".repeat(12) }),
	});
	expect(people.status).toBeLessThan(500);
});
