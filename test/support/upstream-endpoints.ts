/**
 * A scripted model server for all endpoints but chats: completions, embeddings, reranking, images and transcriptions,
 * in the format of its family. It answers by default; `next` scripts single answers.
 *
 *     const upstream = withEndpoints("vllm");
 *     upstream.next(() => Response.json({ error: "no" }, { status: 500 }));
 *     upstream.requests[0].body;   // JSON, or the fields of a form
 */
import type { DialectName } from "../../src/catalog/model.ts";
import { untilEnd } from "./at-end.ts";
import { waitFor } from "./wait.ts";

type Json = Record<string, unknown>;

export interface SeenCall {
	readonly path: string;
	readonly headers: Headers;
	/** The parsed JSON body, or the text fields of a form with lists as arrays. */
	readonly body: Json;
	readonly file: File | undefined;
	/** Resolves if the client disconnects before the end of the response. */
	readonly aborted: Promise<void>;
}

export type Script = (call: SeenCall) => Response | Promise<Response>;

export type EndpointServer = ReturnType<typeof startEndpoints>;

/** Starts a server for all tests of a file, stopped after the last test. */
export const withEndpoints = (dialect: DialectName) => untilEnd(startEndpoints(dialect));

export function startEndpoints(dialect: DialectName) {
	const requests: SeenCall[] = [];
	const scripts: Script[] = [];
	const server = Bun.serve({
		port: 0,
		hostname: "127.0.0.1",
		idleTimeout: 0,
		development: false,
		maxRequestBodySize: 512 * 1024 * 1024,
		async fetch(request) {
			const { pathname } = new URL(request.url);
			if (request.method !== "POST") return Response.json({ object: "list", data: [] });
			const aborted = Promise.withResolvers<void>();
			request.signal.addEventListener("abort", () => aborted.resolve());
			const call = { path: pathname, headers: request.headers, aborted: aborted.promise, ...(await bodyOf(request)) };
			requests.push(call);
			const script = scripts.shift();
			return script === undefined ? answerOf(dialect, call) : await script(call);
		},
	});
	return {
		url: `http://127.0.0.1:${server.port}/v1`,
		requests,
		next: (...more: Script[]) => void scripts.push(...more),
		async waitForRequest(nth: number) {
			await waitFor(() => requests.length >= nth, `request ${nth}`);
			return requests[nth - 1] as SeenCall;
		},
		stop: () => server.stop(true),
	};
}

async function bodyOf(request: Request): Promise<Pick<SeenCall, "body" | "file">> {
	if (!(request.headers.get("content-type") ?? "").startsWith("multipart/")) {
		return { body: (await request.json()) as Json, file: undefined };
	}
	const form = await request.formData();
	const body: Json = {};
	for (const name of new Set(form.keys())) {
		const values = form.getAll(name).filter((value) => typeof value === "string");
		if (values.length > 0) body[name] = name.endsWith("[]") ? values : values[0];
	}
	return { body, file: (form.get("file") as File | null) ?? undefined };
}

function answerOf(dialect: DialectName, { path, body }: SeenCall): Response {
	if (path.endsWith("/completions")) return completionAnswer(dialect, body);
	if (path.endsWith("/embeddings")) return embeddingAnswer(dialect, body);
	if (path.endsWith("/rerank")) return rerankAnswer(dialect, body);
	if (path.endsWith("/images/generations")) return imageAnswer(body);
	if (path.endsWith("/audio/transcriptions")) return transcriptionAnswer(dialect, body);
	return Response.json({ error: { message: "no such address", type: "not_found", code: 404 } }, { status: 404 });
}

/** Each choice consists of these three words. A prompt has one token per word, or the tokens it was given. */
const WORDS = [" one", " two", " three"];
const FOREIGN = { prompt_token_ids: [1, 2], kv_transfer_params: { host: "10.0.0.1" }, secret_path: "/srv/model" };

function promptsOf(prompt: unknown): unknown[] {
	if (typeof prompt === "string") return [prompt];
	const list = prompt as unknown[];
	return typeof list[0] === "number" ? [list] : list;
}

const tokensOf = (input: unknown) =>
	typeof input === "string" ? Math.max(1, input.split(/\s+/).filter(Boolean).length) : (input as unknown[]).length;

function completionAnswer(dialect: DialectName, body: Json): Response {
	const prompts = promptsOf(body.prompt);
	const single = dialect === "ollama" || dialect === "tgi";
	const n = single ? 1 : Number(body.n ?? 1);
	const words = WORDS.slice(0, Number(body.max_tokens));
	const finish = words.length < WORDS.length ? "length" : dialect === "tgi" ? "eos_token" : "stop";
	const prompt = prompts.reduce<number>((sum, one) => sum + tokensOf(one), 0);
	const count = prompts.length * n;
	const usage = (prompt_tokens: number, completion_tokens: number) => ({
		prompt_tokens,
		completion_tokens,
		total_tokens: prompt_tokens + completion_tokens,
	});
	const echo = (index: number) => (body.echo === true ? String(prompts[Math.floor(index / n)]) : "");
	const logprobs =
		typeof body.logprobs === "number"
			? {
					tokens: words,
					token_logprobs: words.map(() => -0.5),
					top_logprobs: null,
					text_offset: words.map((_, at) => at),
				}
			: null;
	const head = {
		id: dialect === "tgi" ? "" : "cmpl-upstream",
		object: "text_completion",
		created: 1,
		model: "/models/secret.gguf",
	};
	if (body.stream !== true) {
		const choices = Array.from({ length: count }, (_, index) => ({
			index,
			text: echo(index) + words.join(""),
			logprobs,
			finish_reason: finish,
			stop_reason: null,
		}));
		// llama.cpp counts the tokens of the first choice only.
		const counted =
			dialect === "llama.cpp" ? usage(tokensOf(prompts[0]), words.length) : usage(prompt, words.length * count);
		return Response.json({ ...head, choices, usage: counted, ...FOREIGN });
	}
	const events: Json[] = [];
	const options = (body.stream_options ?? {}) as Json;
	const zero = dialect === "ollama" ? { usage: usage(0, 0) } : {};
	words.forEach((word, at) => {
		for (let index = 0; index < count; index += 1) {
			const running =
				options.continuous_usage_stats === true
					? { usage: usage(tokensOf(prompts[Math.floor(index / n)]), at + 1) }
					: zero;
			const text = (at === 0 ? echo(index) : "") + word;
			events.push({
				...head,
				choices: [{ index, text, logprobs: null, finish_reason: dialect === "tgi" ? "" : null }],
				...running,
				...FOREIGN,
			});
		}
	});
	for (let index = 0; index < count; index += 1) {
		const own = dialect === "llama.cpp" ? { usage: usage(tokensOf(prompts[Math.floor(index / n)]), words.length) } : {};
		events.push({ ...head, choices: [{ index, text: "", logprobs: null, finish_reason: finish }], ...own });
	}
	if (dialect !== "llama.cpp" && options.include_usage === true)
		events.push({ ...head, choices: [], usage: usage(prompt, words.length * count) });
	return sse([...events.map((event) => JSON.stringify(event)), "[DONE]"]);
}

function sse(payloads: readonly string[]): Response {
	return new Response(payloads.map((payload) => `data: ${payload}\n\n`).join(""), {
		headers: { "content-type": "text/event-stream" },
	});
}

export function brokenSse(payloads: readonly string[], more: { stall?: Promise<unknown> } = {}): Response {
	const stream = new ReadableStream({
		async start(controller) {
			controller.enqueue(payloads.map((payload) => `data: ${payload}\n\n`).join(""));
			// Waits, because an error discards data that the runtime has not sent yet.
			await (more.stall ?? Bun.sleep(150));
			controller.error(new Error("scripted break"));
		},
	});
	return new Response(stream, { headers: { "content-type": "text/event-stream" } });
}

/** Returns an input's vector: its length, and two fractions that float32 stores exactly. */
export function vectorOf(input: unknown): number[] {
	return [(input as string | number[]).length, 0.5, -0.25];
}

function embeddingAnswer(dialect: DialectName, body: Json): Response {
	const inputs = promptsOf(body.input);
	if (dialect === "tei" && inputs.length > 32) {
		const message = `batch size ${inputs.length} > maximum allowed batch size 32`;
		return Response.json({ message, code: 422, type: "Validation" }, { status: 422 });
	}
	const tokens = inputs.reduce<number>((sum, one) => sum + tokensOf(one), 0);
	// In reverse order, because clients must order by `index`.
	const data = inputs.map((input, index) => ({ object: "embedding", index, embedding: vectorOf(input) })).reverse();
	const usage = { prompt_tokens: tokens, total_tokens: tokens };
	return Response.json({ object: "list", data, model: "/models/secret", usage, ...FOREIGN });
}

/** Builds a rerank response. A document's score is its length, so the longest document is first. */
function rerankAnswer(dialect: DialectName, body: Json): Response {
	const documents = (dialect === "tei" ? body.texts : body.documents) as string[];
	const tokens = documents.reduce((sum, text) => sum + tokensOf(text) + tokensOf(body.query), 0);
	const ranked = documents.map((text, index) => ({ index, score: text.length / 1000, text }));
	if (dialect === "tei") {
		ranked.sort((a, b) => b.score - a.score);
		return Response.json(
			ranked.map(({ index, score }) => ({ index, score })),
			{ headers: { "x-compute-tokens": String(tokens) } },
		);
	}
	if (dialect === "sglang")
		return Response.json(
			ranked.map(({ index, score, text }) => ({ score, document: text, index, meta_info: { path: "/srv" } })),
		);
	const results = ranked.map(({ index, score, text }) => ({
		index,
		relevance_score: score,
		...(dialect === "vllm" ? { document: { text, multi_modal: null } } : {}),
	}));
	const usage = dialect === "openai" ? undefined : { total_tokens: tokens };
	const meta = dialect === "openai" ? { billed_units: { search_units: 77 } } : undefined;
	return Response.json({ id: "rerank-upstream", model: "/models/secret", results, usage, meta });
}

function imageAnswer(body: Json): Response {
	const count = Number(body.n ?? 1);
	const data = Array.from({ length: count }, () =>
		body.response_format === "url"
			? { url: "https://images.example.com/a.png", local_path: "/srv/out.png" }
			: { b64_json: "aGVsbG8=", revised_prompt: "a cat", seed: 7 },
	);
	return Response.json({
		created: 1,
		data,
		usage: { input_tokens: 5, output_tokens: 100 * count, total_tokens: 5 + 100 * count },
	});
}

function transcriptionAnswer(dialect: DialectName, body: Json): Response {
	const text = "Hello there, big world.";
	if (body.stream === "true") {
		const words = ["Hello", " there,", " big", " world."];
		if (dialect !== "vllm") {
			const usage = { type: "duration", seconds: 7 };
			return sse([
				...words.map((delta) => JSON.stringify({ type: "transcript.text.delta", delta })),
				JSON.stringify({ type: "transcript.text.done", text, usage, path: "/srv" }),
				"[DONE]",
			]);
		}
		const head = { id: "trsc-upstream", object: "transcription.chunk", model: "/models/secret" };
		const events: Json[] = words.map((content) => ({
			...head,
			choices: [{ delta: { content }, finish_reason: null }],
		}));
		events.push({ ...head, choices: [{ delta: { content: "" }, finish_reason: "stop" }] });
		if (body.stream_include_usage === "true")
			events.push({ ...head, choices: [], usage: { prompt_tokens: 40, completion_tokens: 6, total_tokens: 46 } });
		return sse([...events.map((event) => JSON.stringify(event)), "[DONE]"]);
	}
	if (body.response_format === "verbose_json") {
		const counts = { temperature: 0, avg_logprob: -0.1, compression_ratio: 1, no_speech_prob: 0.01 };
		const segments = [
			{ id: 0, seek: 0, start: 0, end: 2.5, text: " Hello there,", tokens: [1, 2], ...counts, file: "/srv" },
			{ id: 1, seek: 0, start: 2.5, end: 6.7, text: " big world.", tokens: [3], ...counts },
		];
		// vLLM sends the duration as text, and no usage.
		const duration = dialect === "vllm" ? "6.7" : 6.7;
		return Response.json({ task: "transcribe", language: "en", duration, text, segments, path: "/srv" });
	}
	return Response.json({ text, usage: { type: "duration", seconds: 7 }, path: "/srv" });
}

/** Returns `seconds` of silence as a WAV file of 16 kHz mono. */
export function wavOf(seconds: number): Uint8Array<ArrayBuffer> {
	const bytes = Buffer.alloc(44 + seconds * 32_000);
	bytes.write("RIFF", 0, "latin1");
	bytes.writeUInt32LE(bytes.length - 8, 4);
	bytes.write("WAVEfmt ", 8, "latin1");
	bytes.writeUInt32LE(16, 16);
	bytes.writeUInt16LE(1, 20);
	bytes.writeUInt16LE(1, 22);
	bytes.writeUInt32LE(16_000, 24);
	bytes.writeUInt32LE(32_000, 28);
	bytes.writeUInt16LE(2, 32);
	bytes.writeUInt16LE(16, 34);
	bytes.write("data", 36, "latin1");
	bytes.writeUInt32LE(bytes.length - 44, 40);
	return new Uint8Array(bytes);
}

/** Texts in responses of the scripted servers that clients must not see. */
export const SECRET_WORDS = /upstream-|secret|srv|meta_info|local_path|seed|billed_units":\{"search_units":77/;

/** YAML of a deployment; by default a chat model on vLLM. `rates` and `parameters` are written as in the file. */
export function deployment(options: {
	id: string;
	kind?: string;
	url: string;
	dialect?: DialectName;
	rates?: string;
	parameters?: string;
	extra?: string;
	apiKey?: string;
}): string {
	const { kind = "chat", dialect = "vllm", rates = 'input: "1", output: "2"' } = options;
	const chat = kind === "chat" ? "    modes: [chat, completions]\n    max_output_tokens: 1024\n" : "";
	return `  - id: ${options.id}
    kind: ${kind}
${chat}    context_length: 4096
    parameters: [${options.parameters ?? ""}]
    rates: { ${rates} }
${options.extra ?? ""}
    upstreams:
      - url: ${options.url}
        model: served-name
        dialect: ${dialect}
${options.apiKey === undefined ? "" : `        api_key: ${options.apiKey}\n`}`;
}
