import { expect, test } from "bun:test";
import { openRaw } from "../support/raw-http.ts";
import { withConsole } from "./product.ts";

const product = await withConsole();
const payer = await product.secret("100");
const MB = 1024 * 1024;
/** The runtime alone would receive such a body for as long as the client sends it. */
const ENDED_MS_MAX = 15_000;
const CHUNK = `10000\r\n${"x".repeat(0x10000)}\r\n`;
const chunked = (path: string, method = "POST") =>
	`${method} ${path} HTTP/1.1\r\nhost: test.example\r\ntransfer-encoding: chunked\r\n\r\n`;

test.each([
	["an unknown path", chunked("/v1/nothing"), 404],
	["a missing key", chunked("/v1/chat/completions"), 401],
	["a page's missing length", chunked("/api/auth/sign-in/email"), 400],
	["the management interface", chunked("/v1/management/accounts"), 400],
	["too large a body", chunked("/v1/chat/completions").replace("host", `authorization: Bearer ${payer}\r\nhost`), 413],
	["a GET request", chunked("/livez", "GET"), 200],
	[
		"a missing key of an upload",
		chunked("/v1/files").replace("transfer-encoding: chunked", "content-length: 1000000000"),
		401,
	],
])(
	"the answer to %s ends the connection of an endless body",
	async (_, head, status) => {
		const client = await openRaw(product.url, head);
		const sending = setInterval(() => client.write(CHUNK), 2);
		const text = await client.ended(ENDED_MS_MAX).finally(() => clearInterval(sending));
		expect(text).toStartWith(`HTTP/1.1 ${status} `);
		expect(text.toLowerCase()).toContain("connection: close");
	},
	2 * ENDED_MS_MAX,
);

test.each([1, 30])("a client that sends a refused body of %d MB reads the whole answer", async (megabytes) => {
	for (const path of ["/v1/chat/completions", "/v1/nothing", "/api/auth/sign-in/email"]) {
		const body = new Uint8Array(megabytes * MB + 1);
		const response = await fetch(`${product.url}${path}`, { method: "POST", body });
		expect(await response.json()).toMatchObject({ error: { message: expect.any(String) } });
	}
});

test("a short refused body keeps its connection, declared or chunked", async () => {
	for (const body of ["content-length: 2\r\n\r\n{}", "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"]) {
		const client = await openRaw(
			product.url,
			chunked("/v1/nothing").replace("transfer-encoding: chunked\r\n\r\n", body),
		);
		await client.until("not_found");
		client.write("GET /livez HTTP/1.1\r\nhost: test.example\r\n\r\n");
		expect((await client.until("ok\n")).toLowerCase()).not.toContain("connection: close");
		client.leave();
	}
});
