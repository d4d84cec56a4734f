import { expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { atEnd, untilEnd } from "../support/at-end.ts";

/** Twice what the process may open, its own included. */
const CLIENTS = 128;

/** Asks once and keeps the connection. */
function ask(port: number): Promise<Socket> {
	const { promise, resolve, reject } = Promise.withResolvers<Socket>();
	const socket = connect(port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n"));
	socket.once("data", () => resolve(socket));
	socket.once("error", reject);
	return promise;
}

test("clients that keep their connections keep nobody else away once no descriptor is left", async () => {
	const child = Bun.spawn(
		[
			"sh",
			"-c",
			'ulimit -n 64; exec "$@"',
			"sh",
			process.execPath,
			join(import.meta.dir, "spare-descriptors-child.ts"),
		],
		{ stdio: ["ignore", "pipe", "inherit"] },
	);
	untilEnd({ stop: async () => child.kill("SIGKILL") });
	const lines = createInterface({ input: Readable.fromWeb(child.stdout as never) })[Symbol.asyncIterator]();
	const port = Number((await lines.next()).value);
	for (let client = 0; client < CLIENTS; client += 1) {
		const socket = await ask(port);
		socket.on("error", () => undefined);
		atEnd(() => socket.destroy());
	}
	expect((await lines.next()).value).toStartWith("nearly all files that this process may open are in use");
}, 30_000);
