import { demoModelSpec } from "./found-model.ts";

export const DEMO_MODEL_ID = "tollgate-demo";
const CONTEXT_LENGTH = 8192;
const MAX_OUTPUT_TOKENS = 1024;
const TOKEN_DELAY_MS = 15;

type Answer = ReturnType<typeof answerTo>;

export type DemoUpstream = ReturnType<typeof startDemoUpstream>;

/**
 * Built-in model server on a loopback port. Uses real HTTP, so that the demo runs every part of the service.
 * `tokenDelayMs` is the pause before each streamed token, which makes streaming visible.
 */
export function startDemoUpstream({ tokenDelayMs = TOKEN_DELAY_MS } = {}) {
	const server = Bun.serve({
		hostname: "127.0.0.1",
		port: 0,
		idleTimeout: 60,
		development: false,
		fetch(request) {
			const call = `${request.method} ${new URL(request.url).pathname}`;
			if (call === "POST /v1/chat/completions") return chat(request, tokenDelayMs);
			if (call === "GET /v1/models")
				return Response.json({ object: "list", data: [{ id: DEMO_MODEL_ID, object: "model" }] });
			return refuse(404, "There is nothing here.");
		},
		error: () => refuse(500, "The demo model failed."),
	});
	const url = `http://127.0.0.1:${server.port}/v1`;
	return {
		url,
		model: demoModelSpec({
			id: DEMO_MODEL_ID,
			name: "Tollgate demo",
			kind: "chat",
			modes: ["chat"],
			contextLength: CONTEXT_LENGTH,
			maxOutputTokens: MAX_OUTPUT_TOKENS,
			parameters: ["max_tokens", "max_completion_tokens", "stop"],
			upstream: { url, model: DEMO_MODEL_ID, dialect: "openai" },
		}),
		stop: () => server.stop(true),
	};
}

async function chat(request: Request, tokenDelayMs: number): Promise<Response> {
	const body = (await request.json().catch(() => null)) as Record<string, unknown> | null;
	if (body === null || !Array.isArray(body.messages)) return refuse(400, "`messages` is missing.");
	const answer = answerTo(body, body.messages.map(messageOf));
	return body.stream === true ? streamed(answer, tokenDelayMs) : whole(answer);
}

function answerTo(body: Record<string, unknown>, messages: readonly DemoMessage[]) {
	const promptTokens = demoPromptTokens(messages);
	const stops = [body.stop ?? []].flat().filter((stop) => typeof stop === "string");
	const all = demoTokens(cutAtStop(demoAnswer(messages, promptTokens), stops));
	const asked = body.max_completion_tokens ?? body.max_tokens;
	const pieces = all.slice(0, typeof asked === "number" ? asked : MAX_OUTPUT_TOKENS);
	return {
		id: `chatcmpl-demo-${Bun.randomUUIDv7()}`,
		created: Math.floor(Date.now() / 1000),
		pieces,
		finishReason: pieces.length < all.length ? "length" : "stop",
		usage: {
			prompt_tokens: promptTokens,
			completion_tokens: pieces.length,
			total_tokens: promptTokens + pieces.length,
		},
	};
}

function whole({ id, created, pieces, finishReason, usage }: Answer): Response {
	const choices = [{ index: 0, message: { role: "assistant", content: pieces.join("") }, finish_reason: finishReason }];
	return Response.json({ id, object: "chat.completion", created, model: DEMO_MODEL_ID, choices, usage });
}

/** Streams an answer. Each event has the usage so far: a client that disconnects pays only for generated tokens. */
function streamed(answer: Answer, tokenDelayMs: number): Response {
	const encoder = new TextEncoder();
	const { id, created, pieces, finishReason, usage } = answer;
	const event = (choices: unknown[], completionTokens: number) => {
		const running = {
			...usage,
			completion_tokens: completionTokens,
			total_tokens: usage.prompt_tokens + completionTokens,
		};
		const record = { id, object: "chat.completion.chunk", created, model: DEMO_MODEL_ID, choices, usage: running };
		return encoder.encode(`data: ${JSON.stringify(record)}\n\n`);
	};
	let at = 0;
	return new Response(
		new ReadableStream<Uint8Array>({
			async pull(controller) {
				if (at < pieces.length) {
					if (at > 0) await Bun.sleep(tokenDelayMs);
					const delta = { ...(at === 0 ? { role: "assistant" } : {}), content: pieces[at] };
					at += 1;
					controller.enqueue(event([{ index: 0, delta, finish_reason: null }], at));
					return;
				}
				controller.enqueue(event([{ index: 0, delta: {}, finish_reason: finishReason }], at));
				controller.enqueue(event([], at));
				controller.enqueue(encoder.encode("data: [DONE]\n\n"));
				controller.close();
			},
		}),
		{ headers: { "content-type": "text/event-stream" } },
	);
}

function messageOf(message: unknown): DemoMessage {
	const { role, content } = (message ?? {}) as { role?: unknown; content?: unknown };
	const parts = Array.isArray(content) ? content : [{ text: content }];
	const text = parts.map((part) => (part as { text?: unknown } | null)?.text).filter((one) => typeof one === "string");
	return { role: typeof role === "string" ? role : "user", text: text.join("\n") };
}

function refuse(status: number, message: string): Response {
	return Response.json({ error: { message, type: "invalid_request_error", param: null, code: null } }, { status });
}

/** Matches a token: up to eight letters or digits with a space before them, a punctuation mark, or white space. */
const TOKEN = / ?[\p{L}\p{M}\p{N}]{1,8}| ?[^\s\p{L}\p{M}\p{N}]|\s/gu;
/** Tokens added per message, for the message's role and separators. */
const MESSAGE_TOKENS = 3;
const QUOTE_CHARS_MAX = 120;

export interface DemoMessage {
	readonly role: string;
	readonly text: string;
}

/** Splits a text into tokens, which joined give the text. Deterministic, so equal requests get equal answers. */
export const demoTokens = (text: string): string[] => text.match(TOKEN) ?? [];

function demoPromptTokens(messages: readonly DemoMessage[]): number {
	return messages.reduce((sum, { text }) => sum + MESSAGE_TOKENS + demoTokens(text).length, 0);
}

function demoAnswer(messages: readonly DemoMessage[], promptTokens: number): string {
	const asked = messages.findLast(({ role }) => role === "user")?.text.trim() ?? "";
	return [
		"Hello! This is the demo model that is built into Tollgate: a short program, not a language model.",
		`It read ${promptTokens} prompt tokens${asked === "" ? "" : `, and your last message was "${shorten(asked)}"`}.`,
		"The rest is as with a real model: your key was checked, credit was reserved before this answer began,",
		"and it is settled from the token counts below.",
		"To serve a real model, start vLLM, SGLang, llama.cpp, Ollama or LM Studio on its usual port and start Tollgate again,",
		"or describe your models in tollgate.yaml; the README says how.",
	].join(" ");
}

/** Cuts the text before the first occurrence of any of `stops`. */
export function cutAtStop(text: string, stops: readonly string[]): string {
	const ends = stops.filter((stop) => stop !== "").map((stop) => text.indexOf(stop));
	return text.slice(0, Math.min(...ends.filter((at) => at >= 0), text.length));
}

function shorten(text: string): string {
	const line = text.replace(/\s+/g, " ");
	const characters = [...line];
	return characters.length <= QUOTE_CHARS_MAX ? line : `${characters.slice(0, QUOTE_CHARS_MAX).join("")}…`;
}
