import { describe, expect, test } from "bun:test";
import { ask, errorOf, expectUncharged } from "../support/chat.ts";
import { openRaw, parseRaw, rawPost } from "../support/raw-http.ts";
import { withChat } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";

/** The gateway answers any invalid input with a documented 4xx error and no charge, never with a 5xx. */

const { upstream, service } = await withChat({ limits: "  body_mb: 4" });
const customer = await service.customer();

const PATH = "/v1/chat/completions";

test("an error message shortens a field name chosen by the client", async () => {
	const { error } = await errorOf(
		await service.chat(customer.secret, ask("x", { logit_bias: { ["k".repeat(10_000)]: "x" } })),
	);
	expect((error.param as string).length).toBeLessThanOrEqual(128);
	expect((error.message as string).length).toBeLessThan(300);
});

describe("the gateway on a raw socket", () => {
	const head = (more: string) =>
		`POST ${PATH} HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer ${customer.secret}\r\nContent-Type: application/json\r\n${more}`;
	const body = JSON.stringify(ask());
	const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

	test("refuses ambiguous request framing and reads no smuggled request", async () => {
		const smuggled = `GET /v1/models HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer ${customer.secret}\r\n\r\n`;
		const probes: Record<string, string> = {
			"length and chunks": head(
				`Content-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}${smuggled}`,
			),
			"two lengths": head(`Content-Length: 5\r\nContent-Length: ${body.length}\r\n\r\n${body}${smuggled}`),
			"a list of lengths": head(`Content-Length: 5, ${body.length}\r\n\r\n${body}${smuggled}`),
			"an unknown encoding": head(`Transfer-Encoding: xchunked\r\n\r\n${chunked}${smuggled}`),
			"an encoding before chunked": head(`Transfer-Encoding: gzip, chunked\r\n\r\n${chunked}${smuggled}`),
			"a signed length": head(`Content-Length: +${body.length}\r\n\r\n${body}${smuggled}`),
			"a negative length": head(`Content-Length: -1\r\n\r\n${smuggled}`),
			"a length beyond numbers": head(`Content-Length: 99999999999999999999\r\n\r\n${smuggled}`),
			"a bad chunk size": head(`Transfer-Encoding: chunked\r\n\r\nzz\r\n${body}\r\n0\r\n\r\n${smuggled}`),
			"a folded header": head(`X-A: b\r\n c\r\nContent-Length: ${body.length}\r\n\r\n${body}${smuggled}`),
			"a space before the colon": head(`Content-Length : ${body.length}\r\n\r\n${body}${smuggled}`),
			"no host": `POST ${PATH} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}${smuggled}`,
			"a NUL in a header": head(`X-A: \u0000\r\nContent-Length: 2\r\n\r\n{}${smuggled}`),
		};
		for (const [name, probe] of Object.entries(probes)) {
			const client = await openRaw(service.url, probe);
			const text = await client.ended().catch(() => client.text());
			client.leave();
			expect([name, text.includes('"object":"list"')]).toEqual([name, false]);
			expect([name, (text.match(/HTTP\/1\.1 /g) ?? []).length <= 1]).toEqual([name, true]);
			if (text !== "")
				expect([name, /^HTTP\/1\.1 [45]\d\d/.test(text), /^HTTP\/1\.1 500/.test(text)]).toEqual([name, true, false]);
		}
	});

	test("refuses headers of 100 KB", async () => {
		const client = await openRaw(service.url, head(`X-Big: ${"x".repeat(100_000)}\r\nContent-Length: 2\r\n\r\n{}`));
		const text = await client.ended();
		expect(text).toMatch(/^HTTP\/1\.1 431/);
		expect((await service.get("/livez")).status).toBe(200);
	});

	test("answers two pipelined requests in order", async () => {
		const client = await openRaw(
			service.url,
			rawPost(PATH, customer.secret, { model: "test-model" }) +
				rawPost(PATH, customer.secret, { ...ask(), model: "b" }),
		);
		await waitFor(() => (client.text().match(/HTTP\/1\.1 /g) ?? []).length === 2, "two answers");
		expect(client.text()).toMatch(/^HTTP\/1\.1 400[\s\S]*HTTP\/1\.1 404/);
		client.leave();
	});

	test("logs a timeout if the client disconnects while it sends its body", async () => {
		const leaving = await service.customer();
		const refused = async () =>
			(await service.db.sql`select code from refused_request where account_id = ${leaving.accountId}`).map(
				(row) => row.code,
			);
		const before = head("").replace(customer.secret, leaving.secret);
		for (const rest of ["Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n5\r\n{"]) {
			const client = await openRaw(service.url, before + rest);
			// The answer on this connection proves that the server has read the bytes sent before on the first connection.
			expect((await service.get("/v1/models", leaving.secret)).status).toBe(200);
			client.leave();
		}
		await waitFor(async () => (await refused()).length === 2, "both to be written down");
		expect(new Set(await refused())).toEqual(new Set(["request_timeout"]));
	});

	test("accepts host names without a domain", async () => {
		for (const host of ["x", "gw", "api", "gw:80"]) {
			const client = await service.openChat(customer.secret, { model: "test-model" }, { host });
			expect([host, parseRaw(await client.until("\r\n\r\n")).status]).toEqual([host, 400]);
			client.leave();
		}
	});
});

test("sends none of the invalid requests to a model server", async () => {
	expect(upstream.requests).toHaveLength(0);
	await expectUncharged(service, customer.accountId);
	expect(service.logged.filter(({ level }) => level === "error")).toEqual([]);
});
