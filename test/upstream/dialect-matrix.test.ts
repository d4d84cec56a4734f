/** Every dialect over real sockets, from a server that has its family's quirks, to one and the same shape. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { DialectName, Model } from "../../src/catalog/model.ts";
import { UpstreamFailure } from "../../src/upstream/call/failure.ts";
import { createUpstreams, type Upstreams } from "../../src/upstream/upstreams.ts";
import {
	askChat,
	chatCall,
	collect,
	limitsWith,
	modelOver,
	openChat,
	snapshotOf,
} from "../support/upstream-catalog.ts";
import { reply, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const DIALECTS: DialectName[] = ["openai", "vllm", "sglang", "llama.cpp", "ollama", "tgi"];
const SINGLE: DialectName[] = ["ollama", "tgi"];
const RUNNING_USAGE: DialectName[] = ["vllm", "sglang"];
/** What must never come out, whatever the server puts in. */
const FOREIGN = /timings|__verbose|secret|token_ids|matched_stop|chatcmpl|lie_|reasoning"|gguf/;

describe.each(DIALECTS)("%s", (dialect) => {
	let server: UpstreamServer;
	let upstreams: Upstreams;
	let model: Model;

	beforeEach(() => {
		server = startUpstream({ dialect });
		upstreams = createUpstreams(
			{ clock: systemClock, log: silentLog },
			{ limits: limitsWith({ silenceMs: 150, firstEventMs: 400 }) },
		);
		model = modelOver([server.spec({ apiKey: "upstream-key" })]);
		upstreams.sync(snapshotOf(model));
	});
	afterEach(async () => {
		await upstreams.stop();
		await server.stop();
	});

	const inFlight = () => upstreams.replicas()[0]?.inFlight;
	const usage = (promptTokens: number, completionTokens: number, cachedTokens = 0, reasoningTokens = 0) => ({
		promptTokens,
		completionTokens,
		cachedTokens,
		reasoningTokens,
	});

	test("a whole answer comes out rebuilt, with the upstream's own count", async () => {
		server.next(
			reply()
				.reasoning("hm hm")
				.text("Hello there, world.")
				.usage({ prompt: 9, completion: 5, cached: 4, reasoning: 2 })
				.lie({
					top: { lie_top: 1, prompt_text: "secret" },
					choice: { lie_choice: 1, stop_reason: 7 },
					delta: { lie_delta: 1 },
				}),
		);
		const { reply: answer, replica } = await askChat(upstreams, model, chatCall());
		expect(replica).toBe("test-model#0");
		expect(answer.choices).toEqual([
			{
				index: 0,
				message: { role: "assistant", content: "Hello there, world.", refusal: null, reasoning_content: "hm hm" },
				logprobs: null,
				finish_reason: "stop",
			},
		]);
		expect(answer.usage).toEqual(usage(9, 5, 4, 2));
		expect(answer.outputBytes).toBe("Hello there, world.hm hm".length);
		expect(JSON.stringify(answer)).not.toMatch(FOREIGN);
		expect(inFlight()).toBe(0);
	});

	test.each([0, 2])(
		"a stream (events %d ms apart) comes out rebuilt, with role, finish and the upstream's own count",
		async (gapMs) => {
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
		},
	);

	test("the request has one output limit, the replica's model and key, and nothing of ours besides", async () => {
		const prompt = [{ role: "user", content: "x" }];
		const fields = {
			temperature: null,
			stop: "END",
			max_tokens: 5,
			max_completion_tokens: 6,
			top_p: 0.5,
		};
		await collect(openChat(upstreams, model, chatCall({ fields, prompt, outputLimit: 77 })));
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
		expect([...headers.keys()].sort()).toEqual([
			"accept",
			"accept-encoding",
			"authorization",
			"connection",
			"content-length",
			"content-type",
			"host",
			"user-agent",
			"x-request-id",
		]);
		expect(headers.get("authorization")).toBe("Bearer upstream-key");
		expect(headers.get("accept-encoding")).toBe("identity");
		await askChat(upstreams, model, chatCall({ fields, prompt, outputLimit: 77 }));
		expect((await server.waitForRequest(2)).body).not.toHaveProperty("stream_options");
	});

	test("tool calls come out whole and as deltas", async () => {
		const script = () =>
			reply().text("Looking.").toolCall("find", { q: "Zürich" }, "call_a").toolCall("count", { n: 3 }, "call_b");
		server.next(script(), script());
		const { reply: answer } = await askChat(upstreams, model, chatCall());
		expect(answer.choices[0]?.finish_reason).toBe("tool_calls");
		expect(answer.choices[0]?.message.tool_calls).toEqual([
			{ id: "call_a", type: "function", function: { name: "find", arguments: '{"q":"Zürich"}' } },
			{ id: "call_b", type: "function", function: { name: "count", arguments: '{"n":3}' } },
		]);
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

	test("an answer cut at the limit finishes with `length`", async () => {
		const call = { outputLimit: 2 };
		expect((await askChat(upstreams, model, chatCall(call))).reply.choices[0]?.finish_reason).toBe("length");
		const got = await collect(openChat(upstreams, model, chatCall(call)));
		expect(got.finish).toEqual(["length"]);
		expect(got.text).toEqual(["echo: one"]);
	});

	test("two choices: usage counts the prompt once and both answers", async () => {
		const stream = openChat(upstreams, model, chatCall({ n: 2 }));
		const got = await collect(stream);
		const { reply: answer } = await askChat(upstreams, model, chatCall({ n: 2 }));
		if (SINGLE.includes(dialect)) {
			expect(server.requests[0]?.body).not.toHaveProperty("n");
			expect(got.text).toHaveLength(1);
			return;
		}
		expect(got.text).toEqual(["echo: one two three", "echo: one two three"]);
		expect(got.finish).toEqual(["stop", "stop"]);
		expect(got.chunks.filter((chunk) => chunk.choices[0]?.delta.role === "assistant")).toHaveLength(2);
		expect(stream.usage()).toEqual(usage(6, 8));
		expect(server.requests[0]?.tokens).toEqual({ prompt: 6, completion: 8 });
		expect(answer.choices.map((choice) => choice.index)).toEqual([0, 1]);
		expect(answer.choices.map((choice) => choice.message.content)).toEqual([
			"echo: one two three",
			"echo: one two three",
		]);
		expect(answer.usage).toEqual(usage(6, 8));
	});

	test("an error event before the first token is a failure without a chunk", async () => {
		server.always(() => reply().errorEvent());
		const got = await collect(openChat(upstreams, model, chatCall()));
		expect(got.chunks).toEqual([]);
		expect(got.error).toMatchObject({ name: "UpstreamFailure", kind: dialect === "ollama" ? "died" : "failed" });
		expect(inFlight()).toBe(0);
		await expect(askChat(upstreams, model, chatCall())).rejects.toBeInstanceOf(UpstreamFailure);
	});

	test("an error in the middle lets what came before it through, then fails", async () => {
		server.next(reply().text("a b c d").errorEvent(2));
		const stream = openChat(upstreams, model, chatCall());
		const got = await collect(stream);
		expect(got.text).toEqual(["a b"]);
		expect(got.error).toMatchObject({ kind: dialect === "ollama" ? "died" : "failed" });
		expect((got.error as Error).message).not.toContain("secret");
		expect(stream.usageIsFinal()).toBe(false);
		if (RUNNING_USAGE.includes(dialect)) expect(stream.usage()?.completionTokens).toBe(2);
		expect(inFlight()).toBe(0);
	});

	test.each(["dieAfter", "endAfter"] as const)(
		"%s: a stream without its end is `died`, after its chunks",
		async (how) => {
			server.next(reply().text("a b c d")[how](2));
			const got = await collect(openChat(upstreams, model, chatCall()));
			expect(got.text).toEqual(["a b"]);
			expect(got.error).toMatchObject({ kind: "died" });
			expect(inFlight()).toBe(0);
		},
	);

	test("silence in the middle and before the first event is a timeout, and the connection is closed", async () => {
		server.next(reply().text("a b c d").stallAfter(2), reply().hang());
		const got = await collect(openChat(upstreams, model, chatCall()));
		expect(got.text).toEqual(["a b"]);
		expect(got.error).toMatchObject({ kind: "timeout", private: "silence deadline" });
		await server.waitForAbort(1);
		const hung = await collect(openChat(upstreams, model, chatCall()));
		expect(hung.error).toMatchObject({ kind: "timeout", private: "first event deadline" });
		await server.waitForAbort(2);
		expect(inFlight()).toBe(0);
	});

	test.each(["waiting", "streaming", "stalled", "whole"] as const)(
		"a client that leaves while %s closes the upstream within a second",
		async (state) => {
			const scripts = {
				waiting: reply().hang(),
				streaming: reply().text("x ".repeat(500)).trickle(5),
				stalled: reply().text("a b c").stallAfter(1),
				whole: reply().hang(),
			};
			server.next(scripts[state]);
			const leave = new AbortController();
			const call = chatCall({ signal: leave.signal });
			const outcome = state === "whole" ? askChat(upstreams, model, call) : undefined;
			const stream = state === "whole" ? undefined : openChat(upstreams, model, call);
			outcome?.catch(() => {});
			await server.waitForRequest(1);
			if (state === "streaming" || state === "stalled") expect(await stream?.next()).not.toBeNull();
			const rest =
				stream === undefined
					? outcome?.catch((error) => error)
					: stream
							.next()
							.then(() => collect(stream))
							.catch((error) => error);
			const leftMs = performance.now();
			leave.abort();
			expect((await server.waitForAbort(1)).abortedAtMs).toBeLessThan(leftMs + 1000);
			const ended = await rest;
			expect(ended.error ?? ended).toMatchObject({ kind: "aborted" });
			expect(inFlight()).toBe(0);
		},
	);

	test("`close` in the middle frees the place and closes the upstream, however often it is called", async () => {
		server.next(reply().text("x ".repeat(500)).trickle(5));
		const stream = openChat(upstreams, model, chatCall());
		await stream.next();
		stream.close();
		stream.close();
		await server.waitForAbort(1);
		expect(inFlight()).toBe(0);
		if (RUNNING_USAGE.includes(dialect)) expect(stream.usage()?.completionTokens).toBeGreaterThan(0);
	});

	test("a streamed request that is answered whole comes out as a stream", async () => {
		server.next(reply().text("all at once").usage({ prompt: 4, completion: 3 }).wholeBody());
		const stream = openChat(upstreams, model, chatCall());
		const got = await collect(stream);
		expect(got.error).toBeUndefined();
		expect(got.text).toEqual(["all at once"]);
		expect(got.finish).toEqual(["stop"]);
		expect(stream.usage()).toEqual(usage(4, 3));
	});
});
