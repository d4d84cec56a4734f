import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { serveAt } from "../../src/planes/run-dir.ts";
import { shutDoor } from "../../src/planes/shut-door.ts";
import { temporaryFolder, untilEnd } from "../support/at-end.ts";
import { startService } from "../support/service.ts";

const folder = temporaryFolder();
const client = join(folder, "client.ts");
/** Asks, leaves a file once the kernel has its request, and prints the answer's first line or why there is none. */
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
	// Until then this process takes nobody in: the kernel does.
	while (!existsSync(sent)) Bun.sleepSync(5);
	return new Response(asking.stdout).text();
}

test("who waits at the listener while a gateway is busy is served, though it stops before it looks", async () => {
	const service = await startService({ models: "  []" });
	const answer = asksAt(new URL(service.url).port, join(folder, "sent"));
	await service.stop();
	expect(await answer).toBe("HTTP/1.1 200 OK\n");
}, 30_000);

test("who waits at the socket of a console whose successor has its name already is served too", async () => {
	const path = join(folder, "console.sock");
	const serve = (text: string) =>
		serveAt(path, { fetch: () => new Response(text), error: () => new Response(), maxRequestBodySize: 1 });
	const old = serve("old");
	const answer = asksAt(path, join(folder, "sent-to-socket"));
	untilEnd(serve("new"));
	await shutDoor(old);
	await old.stop();
	expect(await answer).toBe("HTTP/1.1 200 OK\n");
}, 30_000);
