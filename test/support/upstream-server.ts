/**
 * A scripted model server on a real port, in any dialect.
 *
 *     const upstream = withUpstream("vllm");
 *     upstream.next(reply().text("Hello there.").usage({ prompt: 9, completion: 2 }));   // answers the next request
 *     upstream.next(reply().errorStatus(503), reply().hang());                            // and the two after it
 *     upstream.always(() => reply().text("again"));                                       // whenever nothing is queued
 *     … upstream.url is the base address with /v1; upstream.spec() an UpstreamSpec for a catalogue
 *     const request = await upstream.waitForRequest(1);        // the first POST; .headers, .body, .path
 *     await upstream.waitForAbort(1);                          // its client disconnected before the answer's end
 *     upstream.count()                                         // tokens sent so far, by the upstream's own count
 *
 * Without a script it echoes: the answer is "echo:" and the words of the last message, one word one token, cut to the
 * request's output limit (finish `length`). Prompt tokens are the words of all messages plus 3 a message.
 * GET /v1/models, /health and /api/version answer with `setHealth`'s status (200). `reply()` is in `upstream-reply.ts`.
 */
import type { DialectName, UpstreamSpec } from "../../src/catalog/model.ts";
import { untilEnd } from "./at-end.ts";
import { waitUntilRead } from "./socket-queues.ts";
import { type Reply, reply, type Script, wordsOf } from "./upstream-reply.ts";
import { type Answer, errorPayload, SINGLE_CHOICE, streamEvents, wholeBody } from "./upstream-wire.ts";
import { waitFor } from "./wait.ts";

export { reply };

export interface SeenRequest {
	readonly path: string;
	readonly headers: Headers;
	readonly body: Record<string, unknown>;
	/** Time of the request's arrival by `performance.now()`. */
	readonly atMs: number;
	/** Time at which the client disconnected before the end of the response; undefined if it did not. */
	abortedAtMs: number | undefined;
	/** Tokens as the upstream counts them. `completion` grows with each event sent, over all choices. */
	readonly tokens: { prompt: number; completion: number };
	/** Resolves when the response was sent completely, or the client disconnected. */
	readonly over: Promise<void>;
}

export type UpstreamServer = ReturnType<typeof startUpstream>;

const WAIT_MS = 20_000;

/** Starts a server for all tests of a file, stopped after the last test. */
export const withUpstream = (dialect?: DialectName) => untilEnd(startUpstream(dialect && { dialect }));

export function startUpstream(options: { dialect?: DialectName; model?: string; port?: number } = {}) {
	const dialect = options.dialect ?? "openai";
	const model = options.model ?? "upstream-model";
	const queue: Reply[] = [];
	const requests: SeenRequest[] = [];
	let fallback: (body: Record<string, unknown>) => Reply = () => reply();
	let health = 200;
	let probes = 0;
	let open = 0;

	const server = Bun.serve({
		port: options.port ?? 0,
		hostname: "127.0.0.1",
		idleTimeout: 0,
		development: false,
		maxRequestBodySize: 256 * 1024 * 1024,
		async fetch(request) {
			const path = new URL(request.url).pathname;
			if (request.method === "GET" || request.method === "HEAD") return probe(path);
			const body = (await request.json()) as Record<string, unknown>;
			const { script } = queue.shift() ?? fallback(body);
			const ending = Promise.withResolvers<void>();
			const answer = decide(script, body);
			const tokens = { prompt: answer.usage?.prompt ?? wordCount(body), completion: 0 };
			const seen: SeenRequest = {
				path,
				headers: request.headers,
				body,
				atMs: performance.now(),
				abortedAtMs: undefined,
				tokens,
				over: ending.promise,
			};
			const end = () => {
				if (finished) return;
				finished = true;
				open -= 1;
				ending.resolve();
			};
			let finished = false;
			open += 1;
			request.signal.addEventListener("abort", () => {
				if (!finished) seen.abortedAtMs = performance.now();
				end();
			});
			requests.push(seen);
			return await respond(script, answer, seen, request.signal, end);
		},
	});

	function probe(path: string): Response {
		probes += 1;
		if (path !== "/v1/models") return new Response(health === 200 ? "{}" : "no", { status: health });
		return Response.json({ object: "list", data: [{ id: model, object: "model" }] }, { status: health });
	}

	function decide(script: Script, body: Record<string, unknown>): Answer {
		const limit = Number(body.max_completion_tokens ?? body.max_tokens ?? Number.POSITIVE_INFINITY);
		const all = script.pieces ?? wordsOf(`echo: ${lastText(body)}`).map((text) => ({ kind: "text" as const, text }));
		const pieces = script.pieces === undefined ? all.slice(0, limit) : all;
		const choices = SINGLE_CHOICE.has(dialect) ? 1 : Number(body.n ?? 1);
		const usage = script.usage === undefined ? { prompt: wordCount(body), completion: pieces.length } : script.usage;
		const finish = pieces.length < all.length ? "length" : script.finish;
		return { pieces, finish, usage, choices, lies: script.lies, model: String(body.model ?? model) };
	}

	async function respond(
		script: Script,
		answer: Answer,
		seen: SeenRequest,
		signal: AbortSignal,
		end: () => void,
	): Promise<Response> {
		const { instead } = script;
		if (script.delayMs > 0) await Bun.sleep(script.delayMs);
		if (script.gate !== undefined) await script.gate;
		if (instead === "hang") await new Promise((resolve) => signal.addEventListener("abort", resolve));
		if (instead === "hang" || instead === "reset") {
			if (instead === "reset") end();
			return new Response(brokenBody());
		}
		if (instead !== undefined) {
			end();
			return new Response(instead.body as BodyInit, { status: instead.status, headers: instead.headers });
		}
		const { status } = script;
		if (script.eventsAs === undefined && (seen.body.stream !== true || script.whole)) {
			if (script.breaks?.how === "stall") await new Promise((resolve) => signal.addEventListener("abort", resolve));
			seen.tokens.completion = answer.pieces.length * answer.choices;
			end();
			return Response.json(
				script.breaks?.how === "error" ? JSON.parse(errorPayload(dialect)) : wholeBody(dialect, answer),
				{ status },
			);
		}
		return new Response(streamBody(script, answer, seen, signal, end), {
			status,
			headers: { "content-type": script.eventsAs ?? "text/event-stream" },
		});
	}

	function streamBody(
		script: Script,
		answer: Answer,
		seen: SeenRequest,
		signal: AbortSignal,
		end: () => void,
	): ReadableStream {
		const wish = (seen.body.stream_options ?? {}) as Record<string, unknown>;
		const events = streamEvents(dialect, answer, {
			includeUsage: wish.include_usage === true,
			continuousUsage: wish.continuous_usage_stats === true,
		});
		const encoder = new TextEncoder();
		const { breaks, gapMs, pause } = script;
		let waits = pause !== undefined;
		let at = 0;
		let pieces = 0;
		const line = (payload: string) => `data: ${payload}\n\n`;
		/** Writes all events up to the next pause or break in one piece. */
		function batch(): string {
			let text = "";
			while (at < events.length) {
				const event = events[at] as (typeof events)[number];
				if (breaks !== undefined && pieces + event.pieces > breaks.after) break;
				if (waits && pieces + event.pieces > (pause?.after ?? 0)) break;
				at += 1;
				pieces += event.pieces;
				seen.tokens.completion += event.tokens;
				text += line(event.payload);
				if (gapMs > 0) break;
			}
			if (at === events.length && script.endMarker && breaks === undefined) text += line("[DONE]");
			return text;
		}
		let broken = false;
		return new ReadableStream({
			async pull(controller) {
				if (gapMs > 0 && at > 0) await Bun.sleep(gapMs);
				let text = signal.aborted ? "" : batch();
				if (text === "" && waits) {
					await pause?.until;
					waits = false;
					text = batch();
				}
				if (text !== "") {
					controller.enqueue(encoder.encode(text));
					if (at < events.length || breaks !== undefined) return;
					end();
					controller.close();
				} else if (signal.aborted) {
					end();
				} else if (breaks?.how === "stall") {
					await new Promise((resolve) => signal.addEventListener("abort", resolve));
				} else if (breaks?.how === "error" && !broken) {
					broken = true;
					const payload = breaks.body === undefined ? errorPayload(dialect) : JSON.stringify(breaks.body);
					const marker = dialect === "llama.cpp" || dialect === "ollama" ? "" : line("[DONE]");
					end();
					controller.enqueue(encoder.encode(line(payload) + marker));
					controller.close();
				} else {
					// Waits, because an error discards data that the runtime has not sent or the client has not read.
					await waitUntilRead(Number(server.port));
					end();
					if (breaks?.how === "end") controller.close();
					else controller.error(new Error("scripted break"));
				}
			},
		});
	}

	const url = `http://127.0.0.1:${server.port}/v1`;
	return {
		url,
		port: server.port as number,
		requests,
		healthProbes: () => probes,
		setHealth(status: number) {
			health = status;
		},
		next: (...replies: Reply[]) => void queue.push(...replies),
		always(make: () => Reply) {
			fallback = make;
		},
		/** Sets the answer for requests without a queued answer. */
		decide(answer: typeof fallback) {
			fallback = answer;
		},
		spec: (more: Partial<UpstreamSpec> = {}): UpstreamSpec => ({
			url,
			apiKey: null,
			model,
			dialect,
			maxConcurrency: 64,
			keepAlive: true,
			...more,
		}),
		/** Resolves with the nth POST since the start, counted from 1. */
		async waitForRequest(nth = 1) {
			await waitFor(() => requests.length >= nth, `request ${nth}`, WAIT_MS);
			return requests[nth - 1] as SeenRequest;
		},
		/** Resolves when the client of the nth POST has disconnected before the end of the response. */
		async waitForAbort(nth = 1) {
			await waitFor(() => requests[nth - 1]?.abortedAtMs !== undefined, `the abort of request ${nth}`, WAIT_MS);
			return requests[nth - 1] as SeenRequest;
		},
		count: () => ({
			prompt: requests.reduce((sum, { tokens }) => sum + tokens.prompt, 0),
			completion: requests.reduce((sum, { tokens }) => sum + tokens.completion, 0),
		}),
		open: () => open,
		stop: () => server.stop(true),
	};
}

/** Returns a body that fails before its first byte, so that the runtime resets the connection. */
function brokenBody(): ReadableStream {
	return new ReadableStream({
		async pull(controller) {
			await Bun.sleep(1);
			controller.error(new Error("scripted reset"));
		},
	});
}

/** Returns the prompt tokens that the echoing upstream counts. */
function wordCount(body: Record<string, unknown>): number {
	const messages = Array.isArray(body.messages) ? body.messages : [];
	return messages.reduce((sum, message) => sum + 3 + wordsOf(textOf(message)).length, 0);
}

function lastText(body: Record<string, unknown>): string {
	return Array.isArray(body.messages) ? textOf(body.messages.at(-1)) : "";
}

function textOf(message: unknown): string {
	const content = (message as { content?: unknown } | undefined)?.content;
	if (typeof content === "string") return content;
	return Array.isArray(content) ? content.map((part) => part?.text ?? "").join(" ") : "";
}
