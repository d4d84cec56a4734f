import { ptr } from "bun:ffi";
import { expect, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { libc } from "../../src/base/libc.ts";
import { drainListener } from "../../src/planes/drain-listener.ts";
import { listenAtSocket } from "../../src/planes/run-dir.ts";
import { atEnd, temporaryFolder, untilEnd } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import { startService } from "../support/service.ts";

const folder = temporaryFolder();
const client = join(folder, "client.ts");
/** Sends a request, creates a file once the kernel has sent it, and prints the answer's first line or the error. */
writeFileSync(
	client,
	`import { connect } from "node:net";
	import { writeFileSync } from "node:fs";
	const [, , at, sent] = process.argv;
	const socket = connect(at.startsWith("/") ? { path: at } : { port: Number(at), host: "127.0.0.1" }, () => {
		socket.write("GET /livez HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n", () => writeFileSync(sent, ""));
	});
	socket.once("data", (bytes) => {
		console.log(bytes.toString().split("\\r\\n")[0]);
		process.exit();
	});
	socket.once("error", ({ code }) => console.log(code));
	`,
);

function asksAt(place: string, sent: string) {
	const asking = Bun.spawn([process.execPath, client, place, sent], { stdio: ["ignore", "pipe", "inherit"] });
	// Blocks this process, so that only the kernel accepts the connection.
	while (!existsSync(sent)) Bun.sleepSync(5);
	return new Response(asking.stdout).text();
}

test("a client in the accept queue of a stopping gateway is served", async () => {
	const service = await startService({ models: "  []" });
	const answer = asksAt(new URL(service.url).port, join(folder, "sent"));
	await service.stop();
	expect(await answer).toBe("HTTP/1.1 200 OK\n");
}, 30_000);

test("a client in the accept queue of a replaced console is served", async () => {
	const path = join(folder, "console.sock");
	const serve = (text: string) =>
		listenAtSocket(path, { fetch: () => new Response(text), error: () => new Response(), maxRequestBodySize: 1 });
	const old = serve("old");
	const answer = asksAt(path, join(folder, "sent-to-socket"));
	untilEnd(serve("new"));
	await drainListener(old);
	await old.stop();
	expect(await answer).toBe("HTTP/1.1 200 OK\n");
}, 30_000);

test("clients in the accept queue are served as file descriptors become free", async () => {
	const allWait = join(folder, "all-wait");
	const child = join(import.meta.dir, "short-door-child.ts");
	const command = ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", process.execPath, child, allWait];
	const stopping = Bun.spawn(command, { stdio: ["ignore", "pipe", "inherit"] });
	let port = 0;
	for await (const piece of stopping.stdout) {
		port = Number(new TextDecoder().decode(piece));
		break;
	}
	let waiting = 0;
	const asked = Array.from({ length: 40 }, async () => {
		const { promise, resolve } = Promise.withResolvers<string>();
		const socket = connect(port, "127.0.0.1", () => {
			socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n", () => {
				waiting += 1;
				if (waiting === 40) writeFileSync(allWait, "");
			});
		});
		socket.once("data", (bytes) => resolve(bytes.toString().split("\r\n")[0] ?? ""));
		socket.once("error", (error) => resolve((error as NodeJS.ErrnoException).code ?? ""));
		return promise;
	});
	expect(new Set(await Promise.all(asked))).toEqual(new Set(["HTTP/1.1 200 OK"]));
	expect(await stopping.exited).toBe(0);
}, 30_000);

const IPPROTO_TCP = 6;
const TCP_DEFER_ACCEPT = 9;

/**
 * A server with deferred accept: the kernel keeps a connection pending until its request arrives, as on a slow network.
 */
function serveBehindLongWays(hostname: string) {
	const server = Bun.serve({ hostname, port: 0, fetch: () => new Response() });
	const seconds = new Int32Array([10]);
	// One of these file descriptors is the listener; the call fails for all others.
	for (const fd of readdirSync("/proc/self/fd"))
		libc().setsockopt(Number(fd), IPPROTO_TCP, TCP_DEFER_ACCEPT, ptr(seconds), seconds.byteLength);
	return server;
}

test
	.if(process.platform === "linux")
	.each([["::", "127.0.0.1"], ...(LONG ? [["127.0.0.1", "127.0.0.1"] as const, ["::1", "::1"] as const] : [])])(
	"a client that is connecting when %s stops listening is served, from %s",
	async (hostname, host) => {
		const server = serveBehindLongWays(hostname);
		const { promise: first, resolve } = Promise.withResolvers<string>();
		const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
		const socket = connect({ host, port: server.port ?? 0 }, begin);
		socket.once("data", (bytes) => resolve(bytes.toString().split("\r\n")[0] ?? ""));
		socket.once("error", (error) => resolve((error as NodeJS.ErrnoException).code ?? ""));
		socket.once("close", () => resolve("closed"));
		await begun;
		setTimeout(() => socket.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"), 150);
		await drainListener(server);
		await server.stop();
		expect(await first).toBe("HTTP/1.1 200 OK");
	},
	30_000,
);

function isLetIn(host: string, port: number): Promise<boolean> {
	const { promise, resolve } = Promise.withResolvers<boolean>();
	const socket = connect({ host, port, timeout: 250 }, () => resolve(true));
	socket.once("timeout", () => resolve(false));
	socket.once("error", () => resolve(false));
	return promise.finally(() => socket.destroy());
}

const SETPRIV = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"];
const WITHOUT_RIGHTS = process.getuid?.() === 0 && Bun.which("setpriv") !== null ? SETPRIV : [];

test.if(process.platform === "linux").each(["::1", ...(LONG ? ["0.0.0.0", "127.0.0.1", "::"] : [])])(
	"a process without root's rights also serves its accept queue at %s",
	async (hostname) => {
		const child = join(import.meta.dir, "drain-listener-child.ts");
		const shut = Bun.spawn([...WITHOUT_RIGHTS, process.execPath, child, hostname], {
			stdio: ["ignore", "pipe", "inherit"],
		});
		atEnd(() => shut.kill("SIGKILL"));
		let port = 0;
		for await (const piece of shut.stdout) {
			port = Number(new TextDecoder().decode(piece));
			break;
		}
		expect(port).toBeGreaterThan(0);
		expect(await isLetIn(hostname.includes(":") ? "::1" : "127.0.0.1", port)).toBe(false);
	},
	30_000,
);

/** Two servers at two addresses with the same port. Tries again while the port is in use at the second address. */
function twoAtOnePort(hostname: string, elsewhere: string) {
	for (let left = 20; ; left--) {
		const server = Bun.serve({ hostname, port: 0, fetch: () => new Response() });
		const port = server.port ?? 0;
		try {
			return { server, port, other: Bun.listen({ hostname: elsewhere, port, socket: { data() {} } }) };
		} catch (error) {
			server.stop(true);
			if (left === 0) throw error;
		}
	}
}

test.if(process.platform === "linux").each([
	["127.0.0.1", "127.0.0.2"],
	["::1", "127.0.0.1"],
])(
	"a client refused at %s reaches no other service on the same port of %s",
	async (hostname, elsewhere) => {
		const { server, other, port } = twoAtOnePort(hostname, elsewhere);
		untilEnd(other);
		await drainListener(server);
		expect(await isLetIn(hostname, port)).toBe(false);
		expect(await isLetIn(elsewhere, port)).toBe(true);
		other.stop(true);
		await server.stop(true);
	},
	30_000,
);
