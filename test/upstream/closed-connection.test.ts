/**
 * Servers that send no end marker: an answer whose choices have finished is complete once its connection closes or its
 * server is silent.
 */
import { describe, expect, test } from "bun:test";
import type { DialectName, Model } from "../../src/catalog/model.ts";
import type { FetchFunction } from "../../src/upstream/call/post.ts";
import type { StreamCall } from "../../src/upstream/call/stream.ts";
import type { OutputChunk } from "../../src/upstream/call/stream-wire.ts";
import { chatStream } from "../../src/upstream/chat/chat-call.ts";
import { completionStream } from "../../src/upstream/completions.ts";
import { Prompt } from "../../src/upstream/prompt.ts";
import { transcriptionStream } from "../../src/upstream/transcriptions.ts";
import { atEnd } from "../support/at-end.ts";
import { chatCall, collect, openChat } from "../support/upstream-catalog.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { UPSTREAM_SPEC, upstreamsOver } from "../support/upstream-set.ts";
import { CHAT_DIALECTS } from "../support/upstream-wire.ts";

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const said = (index: number, content: string) =>
	event({ choices: [{ index, delta: { content }, finish_reason: null }] });
const finish = (index: number) => event({ choices: [{ index, delta: {}, finish_reason: "stop" }] });
const usage = event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } });
const DONE = "data: [DONE]\n\n";

/** A server of this dialect that sends the pieces and then closes the connection with an error. */
function serverThatBreaks(
	dialect: DialectName,
	pieces: readonly string[],
	url = UPSTREAM_SPEC.url,
	send?: FetchFunction,
) {
	const fetch: FetchFunction = async () => {
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
	return upstreamsOver([{ ...UPSTREAM_SPEC, url, dialect }], {
		fetch: send ?? fetch,
		limits: { breakerFailuresInRow: 1 },
	});
}

const one = [said(0, "a b"), finish(0)];
describe.each(CHAT_DIALECTS)("a stream of %s whose connection closes", (dialect) => {
	test.each([
		["usage and its end marker", [...one, usage, DONE], 2],
		["usage and no end marker, which the runtime may have dropped", [...one, usage], 2],
		["usage and half an end marker", [...one, usage, "data: [DO"], 2],
		["no usage", one, undefined],
		["half a usage event", [...one, usage.slice(0, 40)], undefined],
	])("is complete with a finish reason and %s", async (_, pieces, completionTokens) => {
		const { upstreams, model } = serverThatBreaks(dialect, pieces);
		const stream = openChat(upstreams, model, chatCall());
		const got = await collect(stream);
		expect([got.error, got.text, got.finish]).toEqual([undefined, ["a b"], ["stop"]]);
		expect([stream.usage()?.completionTokens, stream.usageIsFinal()]).toEqual([
			completionTokens,
			completionTokens !== undefined,
		]);
		expect(upstreams.replicas()[0]).toMatchObject({ inFlight: 0, breaker: "closed" });
	});

	test.each([
		["finish reason", [said(0, "a b"), usage], 1],
		["second choice", [said(0, "a b"), finish(0), usage], 2],
	])("fails as `died` without its %s", async (_, pieces, choices) => {
		const { upstreams, model } = serverThatBreaks(dialect, pieces);
		const { error } = await collect(openChat(upstreams, model, chatCall({ choices })));
		expect(error).toMatchObject({ name: "UpstreamFailure", kind: "died" });
	});
});

describe.each(CHAT_DIALECTS)("a finished stream of %s whose connection stays open", (dialect) => {
	const text = event({ choices: [{ index: 0, text: "a b", finish_reason: "stop" }] });
	const input = () => ({ fields: {}, prompt: new Prompt("x"), maxOutputTokens: 9, shape: { prompts: 1, n: 1 } });
	const recording = { file: new Blob(["x"]), fileName: "a.wav", verbose: false, fields: {} };
	const calls: Record<string, [string, (model: Model) => StreamCall<OutputChunk>]> = {
		chat: [one.join(""), (model) => chatStream(model, chatCall(), chatCall())],
		completions: [text, (model) => completionStream(model, chatCall(), input())],
		transcription: [one.join(""), () => transcriptionStream(recording, chatCall())],
	};

	test.each(Object.keys(calls).flatMap((name) => [[name, usage, 250] as const, [name, "", 3_000] as const]))(
		"a %s stream with the usage event %p is complete after %i ms of silence",
		async (name, counted, waitMs) => {
			const clock = createManualClock();
			const [events, call] = calls[name] as (typeof calls)[string];
			let signal: AbortSignal | undefined;
			const fetch: FetchFunction = async (_, { method, signal: asked }) => {
				if (method !== "POST") return new Response();
				signal = asked as AbortSignal;
				const start = (controller: ReadableStreamDefaultController) => {
					controller.enqueue(new TextEncoder().encode(events + counted));
					asked?.addEventListener("abort", () => controller.error(asked.reason));
				};
				return new Response(new ReadableStream({ start }), { headers: { "content-type": "text/event-stream" } });
			};
			const { upstreams, model } = upstreamsOver([{ ...UPSTREAM_SPEC, dialect }], {
				fetch,
				clock,
				limits: { breakerFailuresInRow: 1 },
			});
			const stream = upstreams.open(model, call(model));
			expect((await stream.next())?.length).toBeGreaterThan(0);
			const end = stream.next();
			clock.advance(waitMs - 1);
			expect([Bun.peek.status(end), signal?.aborted]).toEqual(["pending", false]);
			clock.advance(1);
			expect(await end).toBeNull();
			expect(signal?.aborted).toBe(true);
			expect([stream.usageIsFinal(), stream.usage()?.completionTokens]).toEqual(
				counted === "" ? [false, undefined] : [true, 2],
			);
			expect(upstreams.replicas()[0]).toMatchObject({ inFlight: 0, breaker: "closed" });
		},
	);
});

test("a stream is complete if the socket closes without the last HTTP chunk", async () => {
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
