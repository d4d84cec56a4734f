/** Many small pieces on one connection, pipelined requests or short chunks, do not occupy the event loop. */
import { expect, test } from "bun:test";
import { ask } from "../support/chat.ts";
import { answersIn, openRaw } from "../support/raw-http.ts";
import { chatModel } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { withProduct } from "./product.ts";

const upstream = withUpstream();
const product = await withProduct({ models: chatModel({ url: upstream.url }) });
const stranger = await product.secret();
const payer = await product.secret("100");

const request = (line: string, fields = "", body = "") => `${line} HTTP/1.1\r\nhost: x\r\n${fields}\r\n${body}`;
const key = (secret: string) => `authorization: Bearer ${secret}\r\n`;
const ofTwo = "content-type: application/json\r\ncontent-length: 2\r\n";

const KINDS = {
	"a probe": request("GET /livez"),
	"the status page": request("GET /status"),
	"a preflight": request(
		"OPTIONS /v1/chat/completions",
		"origin: https://a.example\r\naccess-control-request-method: POST\r\n",
	),
	"an unknown path": request("GET /v1/unknown"),
	"a wrong method": request("DELETE /v1/models"),
	"no key": request("GET /v1/models"),
	"a wrong key": request("GET /v1/models", key("sk_service_wrong")),
	"a free key": request("GET /v1/models", key(stranger)),
	"a body that is not read": request("POST /v1/chat/completions", ofTwo, "{}"),
	"a wrong body": request("POST /v1/chat/completions", key(payer) + ofTwo, "{}"),
};
const PIPELINED_BYTES = 1_000_000;
/** Largest share of the pipelined requests that is answered: two milliseconds of each received piece. */
const ANSWERED_MAX = 0.25;

test.each(Object.entries(KINDS))("pipelined requests with %s end their connection", async (_, one) => {
	const count = Math.ceil(PIPELINED_BYTES / one.length);
	const client = await openRaw(product.url, one);
	await client.until("HTTP/1.1");
	client.write(one.repeat(count));
	expect((await client.ended()).split("HTTP/1.1 ").length / count).toBeLessThan(ANSWERED_MAX);
});

test("eight pipelined requests are answered in order", async () => {
	const paths = ["/livez", "/v1/none", "/status", "/v1/none", "/livez", "/livez", "/v1/none", "/status"];
	const client = await openRaw(product.url, paths.map((path) => request(`GET ${path}`)).join(""));
	await waitFor(() => client.text().split("HTTP/1.1 ").length > paths.length, "eight answers");
	client.leave();
	const statuses = answersIn(client.text()).map(({ status }) => status);
	expect(statuses).toEqual(paths.map((path) => (path === "/v1/none" ? 404 : 200)));
});

test("requests on 64 connections at once are all answered, and no connection ends", async () => {
	const one = KINDS["the status page"];
	const clients = await Promise.all(Array.from({ length: 64 }, () => openRaw(product.url, one)));
	for (let round = 1; round <= 20; round += 1) {
		await waitFor(() => clients.every((client) => client.text().split("HTTP/1.1 200").length > round), "all answers");
		for (const client of clients) client.write(one);
	}
	for (const client of clients) client.leave();
});

const CHUNKS = [
	['"object":"chat.completion"', 800, 1],
	['"object":"chat.completion"', 100_000, 16],
	['"object":"chat.completion"', 100_000, 4_096],
	// Last, because the chunks of an account's first request arrive while its key is looked up.
	["has more than 1000 chunks of less than 16 bytes", 100_000, 1],
	["has more than 1000 chunks of less than 16 bytes", 100_000, 15],
] as const;

test.each(CHUNKS)("the gateway answers %s to a text of %d bytes in chunks of %d", async (said, bytes, each) => {
	const text = JSON.stringify(ask("x".repeat(bytes)));
	const chunks = text.match(new RegExp(`.{1,${each}}`, "gs")) ?? [];
	const fields = `${key(payer)}content-type: application/json\r\ntransfer-encoding: chunked\r\n`;
	const body = [...chunks, ""].map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join("");
	const client = await openRaw(product.url, request("POST /v1/chat/completions", fields, body));
	await client.until(said);
	client.leave();
});
