/** Requests without `stream` to servers that stream the answer anyway. */
import { describe, expect, test } from "bun:test";
import type { Model } from "../../src/catalog/model.ts";
import type { FetchFunction } from "../../src/upstream/call/post.ts";
import type { CountedReply, UnaryCall } from "../../src/upstream/call/unary.ts";
import { unstreamedChat } from "../../src/upstream/chat/chat-call.ts";
import { unstreamedCompletion } from "../../src/upstream/completions.ts";
import { Prompt } from "../../src/upstream/prompt.ts";
import { transcriptionCall } from "../../src/upstream/transcriptions.ts";
import { chatCall } from "../support/upstream-catalog.ts";
import { UPSTREAM_SPEC, upstreamsOver } from "../support/upstream-set.ts";
import { waitFor } from "../support/wait.ts";

type Json = Record<string, unknown>;
const usage = { prompt_tokens: 3, completion_tokens: 2 };
const textOf = (events: readonly (Json | string)[]) =>
	events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join("");

/** The server answers with these events in pieces of at least 7 bytes. Without `end`, the connection stays open. */
async function ask<Reply extends CountedReply>(
	call: (model: Model) => UnaryCall<Reply>,
	events: readonly (Json | string)[],
	{ contentType = "text/event-stream", status = 200, end = true, limits = {} } = {},
) {
	const bytes = new TextEncoder().encode(textOf(events));
	const size = Math.max(7, bytes.length >> 10);
	let hungUp = false;
	const fetch: FetchFunction = async (_, { method, signal: asked }) => {
		if (method !== "POST") return new Response();
		const start = (controller: ReadableStreamDefaultController) => {
			for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.subarray(at, at + size));
			if (end) controller.close();
			else asked?.addEventListener("abort", () => controller.error(asked.reason));
			asked?.addEventListener("abort", () => (hungUp = true));
		};
		return new Response(new ReadableStream({ start }), { status, headers: { "content-type": contentType } });
	};
	const { upstreams, model } = upstreamsOver([UPSTREAM_SPEC], {
		fetch,
		limits: { breakerFailuresInRow: 1, ...limits },
	});
	const reply = upstreams.call(model, call(model)).then(({ reply }) => reply);
	return { reply, replica: () => upstreams.replicas()[0], hungUp: () => hungUp };
}

const chat =
	(more: object = {}) =>
	(model: Model) =>
		unstreamedChat(model, chatCall(more), chatCall(more));
const completion = (n: number) => (model: Model) =>
	unstreamedCompletion(model, chatCall(), {
		fields: {},
		prompt: new Prompt("x"),
		maxOutputTokens: 9,
		shape: { prompts: 1, n },
	});
const recording = { file: new Blob(["x"]), fileName: "a.wav", verbose: false, fields: {} };
const said = (delta: Json, finish: unknown = null, more: Json = {}) => ({
	choices: [{ index: 0, delta, finish_reason: finish, ...more }],
});
const sealed = { type: "reasoning.encrypted", data: "x".repeat(900_000) };
const logprobs = (token: string) => ({ logprobs: { content: [{ token, logprob: -1 }] } });

describe("stream events in answer to a request without `stream`", () => {
	test.each(["text/event-stream", "application/json", "text/plain"])(
		"are joined to one answer of a chat (%s)",
		async (contentType) => {
			const call = { index: 0, id: "a", function: { name: "f", arguments: '{"q":' } };
			const { reply, replica } = await ask(
				chat(),
				[
					said({ role: "assistant", content: "" }),
					said({ reasoning: "hm" }),
					said({ content: "For" }, null, logprobs("For")),
					said({ content: "ty" }, null, logprobs("ty")),
					said({ tool_calls: [call] }),
					said({ tool_calls: [{ index: 0, function: { arguments: "1}" } }] }),
					said({ tool_calls: [{ index: 1, id: "b", function: { name: "g" } }] }),
					said({ annotations: [{ type: "url_citation", url_citation: { url: "https://a.example/" } }] }),
					{ ...said({ audio: { id: "x", data: "AA", transcript: "For" } }), citations: ["https://a.example/"] },
					{ ...said({ audio: { id: "x", data: "BB", transcript: "ty" } }), service_tier: "flex" },
					said({}, "tool_calls"),
					{ choices: [], usage: { ...usage, total_tokens: 99 } },
					"[DONE]",
				],
				{ contentType, status: contentType === "text/plain" ? 201 : 200 },
			);
			const got = await reply;
			expect(JSON.parse(JSON.stringify(got))).toMatchObject({
				usage: { promptTokens: 3, completionTokens: 2 },
				about: { service_tier: "flex" },
				sources: { citations: ["https://a.example/"] },
			});
			expect(JSON.parse(JSON.stringify(got.choices))).toEqual([
				{
					index: 0,
					message: {
						role: "assistant",
						content: "Forty",
						refusal: null,
						reasoning_content: "hm",
						tool_calls: [
							{ id: "a", type: "function", function: { name: "f", arguments: '{"q":1}' } },
							{ id: "b", type: "function", function: { name: "g", arguments: "{}" } },
						],
						annotations: [
							{
								type: "url_citation",
								url_citation: { start_index: 0, end_index: 0, url: "https://a.example/", title: "" },
							},
						],
						audio: { id: "x", data: "AABB", transcript: "Forty" },
					},
					logprobs: {
						content: ["For", "ty"].map((token) => ({ token, logprob: -1, bytes: null, top_logprobs: [] })),
						refusal: null,
					},
					finish_reason: "tool_calls",
				},
			]);
			expect(replica()).toMatchObject({ inFlight: 0, breaker: "closed", contradictions: 1 });
		},
	);

	test("are joined to several choices of chats and completions", async () => {
		const both = (of: (index: number) => Json) =>
			[1, 0].map((index) => ({ choices: [{ index, finish_reason: "stop", ...of(index) }] }));
		const chats = await ask(chat({ choices: 2 }), [
			...both((index) => ({ delta: { content: `c${index}` } })),
			"[DONE]",
		]);
		expect((await chats.reply).choices.map(({ message }) => message.content)).toEqual(["c0", "c1"]);
		const tokens = (index: number) => ({
			tokens: [`c${index}`],
			token_logprobs: [-1],
			top_logprobs: null,
			text_offset: [0],
		});
		const pieces = both((index) => ({ text: `c${index}`, logprobs: tokens(index), finish_reason: null }));
		const texts = await ask(completion(2), [
			...pieces,
			...both(() => ({ text: "!" })),
			{ choices: [], usage },
			"[DONE]",
		]);
		expect(await texts.reply).toMatchObject({
			choices: [0, 1].map((index) => ({ index, text: `c${index}!`, logprobs: tokens(index), finish_reason: "stop" })),
			outputBytes: 6,
		});
	});

	test("are joined to a transcription", async () => {
		const call = () => transcriptionCall(recording, chatCall());
		const delta = (text: string) => ({ type: "transcript.text.delta", delta: text });
		const done = { type: "transcript.text.done", text: "Hi all", usage: { type: "duration", seconds: 7 } };
		expect(await (await ask(call, [delta("Hi"), delta(" all"), done])).reply).toMatchObject({
			text: "Hi all",
			seconds: 7,
		});
	});

	test("are complete after silence on an open connection", async () => {
		const { reply, replica, hungUp } = await ask(chat(), [said({ content: "a" }, "stop"), { choices: [], usage }], {
			end: false,
		});
		expect(await reply).toMatchObject({ choices: [{ message: { content: "a" } }], usage: { completionTokens: 2 } });
		await waitFor(hungUp, "the end of the connection");
		expect(replica()).toMatchObject({ inFlight: 0, breaker: "closed" });
	});

	test.each<[string, (Json | string)[], object, string]>([
		["an end without a finish reason", [said({ content: "a" })], {}, "died"],
		[
			"an error",
			[said({ content: "a" }), { error: { message: "maximum context length is 8", code: 400 } }],
			{},
			"context_length",
		],
		["silence before the finish", [said({ content: "a" })], { end: false, limits: { silenceMs: 50 } }, "timeout"],
		[
			"reasoning beyond the limit of a batch line",
			[...Array(10).fill(said({ reasoning_details: [sealed] })), said({ content: "a" }, "stop"), "[DONE]"],
			{ patient: true },
			"failed",
		],
		["no events", ["", "hello"], { contentType: "text/plain" }, "died"],
	])("with %s fail the call", async (_, events, more, kind) => {
		await expect((await ask(chat(more), events, more)).reply).rejects.toMatchObject({ kind });
	});
});
