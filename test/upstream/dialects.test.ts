/**
 * Tests each dialect over real sockets: the request sent and the chunks received.
 * `test/gateway/chat/dialect-matrix*.test.ts` test answers and charges.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import type { DialectName, Model } from "../../src/catalog/model.ts";
import type { Upstreams } from "../../src/upstream/upstreams.ts";
import { askChat, chatCall, collect, modelOver, openChat, snapshotOf } from "../support/upstream-catalog.ts";
import { reply, type UpstreamServer, withUpstream } from "../support/upstream-server.ts";
import { upstreamsOver } from "../support/upstream-set.ts";
import { CHAT_DIALECTS } from "../support/upstream-wire.ts";

const RUNNING_USAGE: DialectName[] = ["vllm", "sglang"];
/** Server internals that must never appear in an answer, whatever the server sends. */
const FOREIGN = /timings|__verbose|secret|token_ids|matched_stop|chatcmpl|lie_|reasoning"|gguf/;

describe.each(CHAT_DIALECTS)("%s", (dialect) => {
	let server: UpstreamServer;
	let upstreams: Upstreams;
	let model: Model;

	beforeEach(() => {
		server = withUpstream(dialect);
		({ upstreams, model } = upstreamsOver([server.spec({ apiKey: "upstream-key" })]));
	});

	const inFlight = () => upstreams.replicas()[0]?.inFlight;
	const usage = (promptTokens: number, completionTokens: number, cachedTokens = 0, reasoningTokens = 0) => ({
		promptTokens,
		completionTokens,
		cachedTokens,
		reasoningTokens,
	});

	test.each([0, 2])("rebuilds a stream with events %d ms apart, with the server's usage", async (gapMs) => {
		server.next(
			reply()
				.reasoning("hm hm")
				.text("Hëllo there, wörld.")
				.usage({ prompt: 9, completion: 5, cached: 4, reasoning: 2 })
				.trickle(gapMs)
				.lie({ top: { lie_top: 1, prompt_text: "secret" }, choice: { lie_choice: 1 }, delta: { lie_delta: 1 } }),
		);
		const stream = openChat(upstreams, model, chatCall());
		const got = await collect(stream);
		expect(got.error).toBeUndefined();
		expect(got.text).toEqual(["Hëllo there, wörld."]);
		expect(got.finish).toEqual(["stop"]);
		expect(got.chunks.map((chunk) => chunk.choices[0]?.delta)).toEqual([
			{ role: "assistant", content: "", reasoning_content: "hm" },
			{ reasoning_content: " hm" },
			{ content: "Hëllo" },
			{ content: " there," },
			{ content: " wörld." },
			{},
		]);
		expect(got.outputBytes).toBe(Buffer.byteLength("Hëllo there, wörld.hm hm"));
		expect(stream.usage()).toEqual(usage(9, 5, 4, 2));
		expect(stream.usageIsFinal()).toBe(true);
		expect(stream.replica()).toBe("test-model#0");
		expect(JSON.stringify(got.chunks)).not.toMatch(FOREIGN);
		expect(inFlight()).toBe(0);
	});

	test("headers of one request do not leak into the next", async () => {
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

	test("sends one output limit, the replica's model, its key", async () => {
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

	test("streams tool calls as deltas, the first with id, type, name", async () => {
		server.next(
			reply().text("Looking.").toolCall("find", { q: "Zürich" }, "call_a").toolCall("count", { n: 3 }, "call_b"),
		);
		const got = await collect(openChat(upstreams, model, chatCall()));
		const deltas = got.chunks.flatMap(
			(chunk) => (chunk.choices[0]?.delta.tool_calls ?? []) as { index: number; function: { arguments: string } }[],
		);
		expect(deltas[0]).toMatchObject({ index: 0, id: "call_a", type: "function", function: { name: "find" } });
		expect(deltas[1]).toEqual({ index: 0, function: { arguments: expect.any(String) } });
		const joined = (index: number) =>
			deltas
				.filter((delta) => delta.index === index)
				.map((delta) => delta.function.arguments)
				.join("");
		expect(JSON.parse(joined(0))).toEqual({ q: "Zürich" });
		expect(JSON.parse(joined(1))).toEqual({ n: 3 });
		expect(got.finish).toEqual(["tool_calls"]);
	});

	test("`close` frees the place, also when repeated", async () => {
		server.next(reply().text("x ".repeat(500)).trickle(5));
		const stream = openChat(upstreams, model, chatCall());
		await stream.next();
		stream.close();
		stream.close();
		await server.waitForAbort(1);
		expect(inFlight()).toBe(0);
		if (RUNNING_USAGE.includes(dialect)) expect(stream.usage()?.completionTokens).toBeGreaterThan(0);
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
		expect(stream.usage()).toEqual(usage(4, 3));
	});

	test.each(TYPES)("reads events of type %p", async (type) => {
		server.next(reply().text("one by one").eventsAs(type));
		const { text, error } = await collect(openChat(upstreams, model, chatCall()));
		expect([text.join(""), error]).toEqual(["one by one", undefined]);
	});
});
