/**
 * Tests each dialect over real sockets: the sent request and the received chunks.
 * `test/gateway/chat/dialect-matrix*.test.ts` tests answers and charges.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import type { DialectName, Model } from "../../src/catalog/model.ts";
import type { Upstreams } from "../../src/upstream/upstreams.ts";
import { askChat, chatCall, collect, modelOver, openChat, snapshotOf } from "../support/upstream-catalog.ts";
import { reply, type UpstreamServer, withUpstream } from "../support/upstream-server.ts";
import { upstreamsOver } from "../support/upstream-set.ts";
import { CHAT_DIALECTS } from "../support/upstream-wire.ts";

const RUNNING_USAGE: DialectName[] = ["vllm", "sglang"];

describe.each(CHAT_DIALECTS)("the dialect %s", (dialect) => {
	let server: UpstreamServer;
	let upstreams: Upstreams;
	let model: Model;

	beforeEach(() => {
		server = withUpstream(dialect);
		({ upstreams, model } = upstreamsOver([server.spec({ apiKey: "upstream-key" })]));
	});

	test("never sends the headers of one request with another request", async () => {
		const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
		const trace = { admitted() {}, answered() {}, call: () => ({ headers: { traceparent }, end() {} }) };
		const sent = async (nth: number, more?: Parameters<typeof chatCall>[0]) => {
			await askChat(upstreams, model, chatCall(more));
			const { headers } = await server.waitForRequest(nth);
			return [headers.get("traceparent"), headers.get("authorization"), headers.get("accept")];
		};
		expect(await sent(1)).toEqual([null, "Bearer upstream-key", "application/json"]);
		expect(await sent(2, { trace })).toEqual([traceparent, "Bearer upstream-key", "application/json"]);
		expect(await sent(3)).toEqual([null, "Bearer upstream-key", "application/json"]);
		model = modelOver([server.spec({ apiKey: "next-key" })]);
		upstreams.sync(snapshotOf(model));
		expect(await sent(4)).toEqual([null, "Bearer next-key", "application/json"]);
	});

	test("sends one output limit, the replica's model and the replica's key", async () => {
		const prompt = [{ role: "user", content: "x" }];
		const fields = { temperature: null, stop: "END", max_tokens: 5, max_completion_tokens: 6, top_p: 0.5 };
		await collect(openChat(upstreams, model, chatCall({ fields, prompt, maxOutputTokens: 77 })));
		const { body, headers } = await server.waitForRequest(1);
		const options = RUNNING_USAGE.includes(dialect)
			? { include_usage: true, continuous_usage_stats: true }
			: { include_usage: true };
		expect(body).toEqual({
			model: "upstream-model",
			messages: prompt,
			stop: dialect === "tgi" ? ["END"] : "END",
			top_p: 0.5,
			max_tokens: 77,
			stream: true,
			stream_options: options,
		});
		expect([...headers.keys()].sort().join(" ")).toBe(
			"accept accept-encoding authorization connection content-length content-type host user-agent x-request-id",
		);
		expect(headers.get("authorization")).toBe("Bearer upstream-key");
		expect(headers.get("accept-encoding")).toBe("identity");
		await askChat(upstreams, model, chatCall({ fields, prompt, maxOutputTokens: 77 }));
		expect((await server.waitForRequest(2)).body).not.toHaveProperty("stream_options");
	});

	const TYPES = ["application/json", "text/plain", ""];
	test.each(TYPES)("delivers an unstreamed answer of type %p as a stream", async (type) => {
		const choices = [{ message: { content: "all at once" }, finish_reason: "stop" }];
		const counts = { prompt_tokens: 4, completion_tokens: 3 };
		server.next(reply().raw(JSON.stringify({ choices, usage: counts }), type));
		const stream = openChat(upstreams, model, chatCall());
		const got = await collect(stream);
		expect(got.error).toBeUndefined();
		expect(got.text).toEqual(["all at once"]);
		expect(got.finish).toEqual(["stop"]);
		expect(stream.usage()).toMatchObject({ promptTokens: 4, completionTokens: 3 });
	});

	test.each(TYPES)("reads events with content type %p", async (type) => {
		server.next(reply().text("one by one").eventsAs(type));
		const { text, error } = await collect(openChat(upstreams, model, chatCall()));
		expect([text.join(""), error]).toEqual(["one by one", undefined]);
	});
});
