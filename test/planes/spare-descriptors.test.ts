import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { createKeepAliveClient, type Exchange } from "../chaos/keep-alive-client.ts";
import { startServe } from "../chaos/serve-process.ts";
import { PROGRAM } from "../cli/run-cli.ts";
import { atEnd, temporaryFolder, untilEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { chatModel } from "../support/service.ts";

/** Twice what the process may open, its own included. */
const CLIENTS = 128;

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

test("idle clients are closed a look after connections in use began to end, and a line says so once a minute", async () => {
	const child = Bun.spawn(
		["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", process.execPath, join(import.meta.dir, "spare-steps-child.ts")],
		{ stdio: ["ignore", "pipe", "inherit"] },
	);
	// Whether they are short, how often idle ones were closed, how many lines.
	expect(JSON.parse(await new Response(child.stdout).text())).toEqual([
		[false, 0, 0],
		[true, 0, 1],
		[true, 1, 1],
		[false, 1, 1],
		[true, 1, 1],
		[false, 1, 1],
		[true, 1, 2],
	]);
});

test("a gateway that is short of descriptors ends connections in use by an answer", async () => {
	const folder = temporaryFolder();
	const database = await withDatabase();
	writeFileSync(join(folder, "tollgate.yaml"), `models:\n${chatModel({ url: "http://127.0.0.1:1/v1" })}\n`);
	const env = {
		PORT: "0",
		DATABASE_URL: database.url,
		CONFIG: join(folder, "tollgate.yaml"),
		DATA_DIR: join(folder, "data"),
		DRAIN_S: "0",
	};
	const gateway = await startServe(env, { program: ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", ...PROGRAM] });
	atEnd(() => gateway.kill("SIGKILL"));
	const client = createKeepAliveClient(gateway.url);
	const ask = () => client.ask({ method: "GET", path: "/livez", secret: "none" });
	expect(await ask()).toEqual({ status: 200, fresh: true, last: false });
	for (let other = 0; other < CLIENTS; other += 1) {
		const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
		socket.on("error", () => undefined);
		atEnd(() => socket.destroy());
	}
	let answer: Exchange;
	do answer = await ask();
	while (!answer.last);
	expect(answer).toEqual({ status: 200, fresh: false, last: true });
}, 30_000);
