import { expect, test } from "bun:test";
import { join } from "node:path";
import { silentLog } from "../../src/base/log.ts";
import { ANONYMOUS_TIMEOUT_S } from "../../src/gateway/connection.ts";
import { createConsoleProxy } from "../../src/planes/console-proxy.ts";
import { listenAtSocket } from "../../src/planes/run-dir.ts";
import { atEnd, localServer, temporaryFolder, untilEnd } from "../support/at-end.ts";
import { openRaw } from "../support/raw-http.ts";
import { withService } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";

const folder = temporaryFolder();
let sockets = 0;

/** A gateway's proxy on its own port in front of a console. It reports `address` as the client's address. */
function front(console?: (request: Request) => Response | Promise<Response>, address = "192.0.2.7") {
	const socket = join(folder, `${++sockets}.sock`);
	const timeouts: number[] = [];
	const door = createConsoleProxy({ log: silentLog }, { socket });
	const open = (fetch: (request: Request) => Response | Promise<Response>) =>
		untilEnd(
			listenAtSocket(socket, { fetch, error: () => new Response(null, { status: 500 }), maxRequestBodySize: 1e9 }),
		);
	if (console !== undefined) open(console);
	const server = Bun.serve({
		port: 0,
		maxRequestBodySize: 1e9,
		idleTimeout: 30,
		fetch: (request) => door.handle({ request, address, setIdleTimeout: (seconds) => void timeouts.push(seconds) }),
	});
	atEnd(() => server.stop(true));
	const url = server.url.href.replace(/\/$/, "");
	const raw = async (lines: readonly string[]) => (await openRaw(url, lines.join("\r\n"))).ended();
	return { url, raw, door, open, timeouts };
}

const json = { "content-type": "application/json" };

test("the console gets the client address that the gateway determined", async () => {
	const { raw } = front((request) => Response.json([...request.headers]));
	const lines = [
		"GET / HTTP/1.1",
		"Host: people.example:8443",
		"X-Forwarded-For: 6.6.6.6",
		"X-Forwarded-For: 7.7.7.7",
		"X-Forwarded-Host: evil.example",
		"X-Forwarded-Proto: https",
		"Forwarded: for=6.6.6.6",
		"X-Real-IP: 6.6.6.6",
		"X-Tollgate-Passed-On: no",
		"Connection: close, x-secret-hop",
		"X-Secret-Hop: 1",
		"Cookie: a=b",
		"",
		"",
	];
	const answer = await raw(lines);
	const seen = new Map<string, string>(JSON.parse(answer.slice(answer.indexOf("["), answer.lastIndexOf("]") + 1)));
	expect(seen.get("x-forwarded-for")).toBe("192.0.2.7");
	expect(seen.get("host")).toBe("people.example:8443");
	expect(seen.get("cookie")).toBe("a=b");
	// The gateway sets this header itself and overwrites the client's.
	expect(seen.get("x-tollgate-passed-on")).toBe("yes");
	for (const name of ["x-forwarded-host", "x-forwarded-proto", "forwarded", "x-real-ip", "x-secret-hop"])
		expect([name, seen.get(name)]).toEqual([name, undefined]);
});

test("an answer is forwarded with unchanged status, cookies, encoding and bytes", async () => {
	const packed = Bun.gzipSync("hello");
	const { url } = front((request) => {
		if (new URL(request.url).pathname === "/away") return Response.redirect("/elsewhere", 302);
		const headers = new Headers({ "content-encoding": "gzip", "content-type": "text/plain", "x-own": "1" });
		headers.append("set-cookie", "a=1");
		headers.append("set-cookie", "b=2");
		return new Response(request.method === "HEAD" ? null : packed, { status: 418, headers });
	});
	const answer = await fetch(`${url}/x?y=%20`, { decompress: false } as BunFetchRequestInit);
	expect(answer.status).toBe(418);
	expect(answer.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
	expect(answer.headers.get("content-encoding")).toBe("gzip");
	expect(new Uint8Array(await answer.arrayBuffer())).toEqual(packed);
	const away = await fetch(`${url}/away`, { redirect: "manual" });
	expect([away.status, away.headers.get("location")]).toEqual([302, "/elsewhere"]);
	expect((await fetch(url, { method: "HEAD" })).status).toBe(418);
});

test("a body that is too long or has no length is not forwarded to the console", async () => {
	let asked = 0;
	const { url, raw } = front(async (request) => {
		asked += 1;
		return Response.json({ length: (await request.arrayBuffer()).byteLength });
	});
	const post = (path: string, bytes: number) =>
		fetch(`${url}${path}`, { method: "POST", headers: json, body: new Uint8Array(bytes) });
	expect(await (await post("/api/console/keys", 1024 * 1024)).json()).toEqual({ length: 1024 * 1024 });
	expect(asked).toBe(1);
	const refused = await post("/api/console/keys", 1024 * 1024 + 1);
	expect([refused.status, (await refused.json()).error.code]).toEqual([413, "payload_too_large"]);
	// Only a playground chat may be this large, because it may contain images.
	const chat = "/api/console/playground/chat";
	expect((await post(`${chat}?key=k`, 3 * 1024 * 1024)).status).toBe(200);
	expect((await post(`${chat}/x`, 3 * 1024 * 1024)).status).toBe(413);
	expect((await post("/api/console/batch-start?key=k", 32 * 1024 * 1024)).status).toBe(200);
	expect((await post("/api/console/batch-start?key=k", 32 * 1024 * 1024 + 1)).status).toBe(413);
	const chunked = [
		"POST /api/x HTTP/1.1",
		"Host: h",
		"Connection: close",
		"Transfer-Encoding: chunked",
		"",
		"2",
		"{}",
		"0",
		"",
		"",
	];
	expect(await raw(chunked)).toContain("The request needs a Content-Length header.");
	expect(asked).toBe(3);
});

test("a stream is forwarded event by event and ends when its client leaves", async () => {
	let send: ReadableStreamDefaultController<Uint8Array> | undefined;
	let cancelled = false;
	const { url, timeouts } = front(
		() =>
			new Response(
				new ReadableStream<Uint8Array>({
					start(controller) {
						send = controller;
						controller.enqueue(new TextEncoder().encode("one\n"));
					},
					cancel() {
						cancelled = true;
					},
				}),
			),
	);
	const leave = new AbortController();
	const response = await fetch(url, { signal: leave.signal });
	const reader = (response.body as ReadableStream<Uint8Array>).getReader();
	const next = async () => new TextDecoder().decode((await reader.read()).value);
	expect(await next()).toBe("one\n");
	send?.enqueue(new TextEncoder().encode("two\n"));
	expect(await next()).toBe("two\n");
	leave.abort();
	await waitFor(() => cancelled, "the console to hear of it");
	// The proxy had raised the connection's idle timeout and must restore it.
	await waitFor(() => timeouts.at(-1) === ANONYMOUS_TIMEOUT_S, "the connection's own time");
});

test("a client's disconnect before the answer ends the console's request", async () => {
	const [asked, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
	const { url } = front(async (request) => {
		request.signal.addEventListener("abort", () => left.resolve());
		asked.resolve();
		await left.promise;
		return new Response();
	});
	const leave = new AbortController();
	const response = fetch(url, { signal: leave.signal }).catch(() => undefined);
	await asked.promise;
	leave.abort();
	await left.promise;
	await response;
});

test("a client sees that its answer is incomplete if the console dies during it", async () => {
	const script = `Bun.serve({ unix: process.argv[1], idleTimeout: 0, fetch: () => new Response(new ReadableStream({
		start(controller) { controller.enqueue("half"); } })) }); console.log("up");`;
	const socket = join(folder, "dies.sock");
	const child = Bun.spawn([process.execPath, "-e", script, socket], { stdout: "pipe" });
	await child.stdout.getReader().read();
	const door = createConsoleProxy({ log: silentLog }, { socket });
	const server = localServer((request) => door.handle({ request, address: "", setIdleTimeout() {} }));
	const response = await fetch(server.url);
	const reader = (response.body as ReadableStream<Uint8Array>).getReader();
	expect(new TextDecoder().decode((await reader.read()).value)).toBe("half");
	child.kill("SIGKILL");
	const rest = reader.read().then(
		() => "whole",
		() => "broken",
	);
	expect(await rest).toBe("broken");
});

test("without a console, browser pages retry themselves and programs get a 503", async () => {
	const { url, door } = front();
	expect(door.problem()).toBeUndefined();
	const [page, answer, posted] = await Promise.all([
		fetch(`${url}/overview`, { headers: { accept: "text/html,*/*" } }),
		fetch(`${url}/api/console/me`),
		fetch(`${url}/api/console/keys`, { method: "POST", headers: json, body: "{}" }),
	]);
	expect([page.status, page.headers.get("retry-after")]).toEqual([503, "2"]);
	const text = await page.text();
	expect(text).toContain("The console is restarting");
	expect(text).toContain('http-equiv="refresh"');
	expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
	for (const one of [answer, posted]) {
		expect([one.status, one.headers.get("retry-after")]).toEqual([503, "2"]);
		expect((await one.json()).error).toMatchObject({ code: "service_unavailable", type: "server_error" });
	}
	expect(door.problem()).toContain("console");
});

test("the gateway forwards requests again when a console listens again", async () => {
	const { url, door, open } = front();
	expect((await fetch(url)).status).toBe(503);
	expect(door.problem()).toBeDefined();
	open(() => new Response("here"));
	expect(await (await fetch(url)).text()).toBe("here");
	expect(door.problem()).toBeUndefined();
});

test("a new console takes the socket while the old console finishes its requests", async () => {
	const [inHand, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
	const { url, open } = front(async () => {
		inHand.resolve();
		await release.promise;
		return new Response("old");
	});
	const slow = fetch(url);
	await inHand.promise;
	open(() => new Response("new"));
	expect(await (await fetch(url)).text()).toBe("new");
	release.resolve();
	expect(await (await slow).text()).toBe("old");
});

test("the gateway drops the oldest requests of the busiest network in a flood", async () => {
	const service = await withService({});
	const send = (address: string) =>
		service.app.people.handle({ request: new Request("http://service/none"), address, setIdleTimeout() {} });
	const flood = Array.from({ length: 4_096 }, () => send("192.0.2.1"));
	// Two requests begin immediately; the others wait for turns of the event loop.
	const others = ["198.51.100.1", "198.51.100.2", "198.51.100.3", "198.51.100.4"].map(send);
	const statuses = (await Promise.all([...others, ...flood])).map(({ status }) => status);
	expect(statuses.slice(0, 9)).toEqual([404, 404, 404, 404, 503, 503, 503, 503, 404]);
});
