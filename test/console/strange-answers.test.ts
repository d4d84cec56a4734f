import { expect, test } from "bun:test";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createPublicFetch } from "../../src/console/company/company-oidc.ts";
import { createWebhookSender, webhookSecret } from "../../src/console/notices/webhook.ts";
import { atEnd } from "../support/at-end.ts";
import { waitFor } from "../support/wait.ts";

/** Servers at addresses that customers entered may answer anything: each call must end and affect no other call. */

const open = new Set<Socket>();
let says = "";
const server = createServer((socket) => {
	open.add(socket);
	socket.on("error", () => {});
	socket.on("close", () => open.delete(socket));
	socket.once("data", () => socket.write(says));
}).listen(0, "127.0.0.1");
await once(server, "listening");
atEnd(() => {
	for (const socket of open) socket.destroy();
	server.close();
});
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
const fetched = createPublicFetch({ production: false });
const send = createWebhookSender({ production: false });
const message = { id: "evt_1", url, secret: webhookSecret("secret", "salt"), body: "{}", atMs: Date.now() };
const told = () => send(message, new AbortController().signal);

test("a webhook receiver that upgrades the protocol is disconnected as unreachable", async () => {
	says = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n";
	expect(await told()).toEqual({ problem: "no_connection" });
	await expect(fetched(url, {})).rejects.toThrow("another protocol");
	await waitFor(() => open.size === 0, "the connections to end");
});

test("an invalid HTTP status from a server fails only the call that received it", async () => {
	for (const status of ["099", "600", "999"]) {
		says = `HTTP/1.1 ${status} Odd\r\ncontent-length: 2\r\n\r\n{}`;
		await expect(fetched(url, {})).rejects.toThrow("a status that there is not");
		expect(await told()).toEqual({ status: Number(status) });
	}
	for (const status of [204, 205, 304, 451, 599]) {
		says = `HTTP/1.1 ${status} Known\r\ncontent-length: 0\r\n\r\n`;
		expect((await fetched(url, {})).status).toBe(status);
	}
});
