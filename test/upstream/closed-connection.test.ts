/** Servers that close the connection after their last event: a finished, counted answer is complete. */
import { describe, expect, test } from "bun:test";
import type { DialectName } from "../../src/catalog/model.ts";
import type { Fetch } from "../../src/upstream/call/post.ts";
import { atEnd } from "../support/at-end.ts";
import { chatCall, collect, openChat } from "../support/upstream-catalog.ts";
import { SPEC, upstreamsOver } from "../support/upstream-set.ts";
import { CHAT_DIALECTS } from "../support/upstream-wire.ts";

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const said = (index: number, content: string) =>
	event({ choices: [{ index, delta: { content }, finish_reason: null }] });
const finish = (index: number) => event({ choices: [{ index, delta: {}, finish_reason: "stop" }] });
const usage = event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } });
const DONE = "data: [DONE]\n\n";

/** A server of this dialect that sends these pieces and then breaks the connection. */
function serverThatBreaks(dialect: DialectName, pieces: readonly string[], url = SPEC.url, send?: Fetch) {
	const fetch: Fetch = async () => {
		let at = 0;
		const body = new ReadableStream<Uint8Array>({
			pull(controller) {
				const piece = pieces[at];
				at += 1;
				if (piece !== undefined) controller.enqueue(new TextEncoder().encode(piece));
				else
					controller.error(
						Object.assign(new Error("The socket connection was closed unexpectedly."), { code: "ECONNRESET" }),
					);
			},
		});
		return new Response(body, { headers: { "content-type": "text/event-stream" } });
	};
	return upstreamsOver([{ ...SPEC, url, dialect }], { fetch: send ?? fetch });
}

const one = [said(0, "a b"), finish(0)];
describe.each(CHAT_DIALECTS)("a stream of %s that ends with its connection", (dialect) => {
	test.each([
		["its end marker", [...one, usage, DONE]],
		["no end marker, which the runtime may have dropped", [...one, usage]],
		["half an end marker", [...one, usage, "data: [DO"]],
	])("is complete with its finish, usage and %s", async (_, pieces) => {
		const { upstreams, model } = serverThatBreaks(dialect, pieces);
		const stream = openChat(upstreams, model, chatCall());
		const got = await collect(stream);
		expect([got.error, got.text, got.finish]).toEqual([undefined, ["a b"], ["stop"]]);
		expect(stream.usage()).toMatchObject({ promptTokens: 3, completionTokens: 2 });
		expect([stream.usageIsFinal(), upstreams.replicas()[0]?.inFlight]).toEqual([true, 0]);
	});

	test.each([
		["usage", one, 1],
		["finish", [said(0, "a b"), usage], 1],
		["second choice", [said(0, "a b"), finish(0), usage], 2],
	])("fails as died without its %s", async (_, pieces, choices) => {
		const { upstreams, model } = serverThatBreaks(dialect, pieces);
		const { error } = await collect(openChat(upstreams, model, chatCall({ choices })));
		expect(error).toMatchObject({ name: "UpstreamFailure", kind: "died" });
	});
});

test("a real socket closed without the last chunk completes the stream", async () => {
	const close = Promise.withResolvers<void>();
	const text = [...one, usage].join("");
	const server = Bun.listen({
		hostname: "127.0.0.1",
		port: 0,
		socket: {
			data(socket) {
				socket.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
				socket.write(`${text.length.toString(16)}\r\n${text}\r\n`);
				void close.promise.then(() => socket.end());
			},
		},
	});
	atEnd(() => server.stop(true));
	const { upstreams, model } = serverThatBreaks("llama.cpp", [], `http://127.0.0.1:${server.port}/v1`, fetch);
	const stream = openChat(upstreams, model, chatCall());
	expect((await stream.next())?.length).toBe(2);
	close.resolve();
	expect(await stream.next()).toBeNull();
	expect(stream.usage()).toMatchObject({ completionTokens: 2 });
});
