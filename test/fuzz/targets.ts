/**
 * Every endpoint, whole and streamed: a request, its server's answer with any usage, and the usage in the client's
 * answer.
 */
import { deployment, wavOf } from "../support/upstream-endpoints.ts";

type Json = Record<string, unknown>;

export interface Target {
	readonly name: string;
	readonly path: string;
	/** Id of the target's model in `deployments`. */
	readonly model: string;
	readonly request: (model?: string) => Json | FormData;
	/** The server's answer with this `usage`; undefined: without usage. */
	readonly answer: (usage: unknown) => { readonly body: string; readonly contentType: string };
	/** True if the charge may exceed the reservation when a server ignores its output limit. */
	readonly mayExceed: boolean;
}

const PROMPT = "one two three";
const choice = { index: 0, finish_reason: "stop" };
const json = (value: object) => ({ body: JSON.stringify(value), contentType: "application/json" });
const events = (...values: readonly object[]) => ({
	body: `${values.map((value) => `data: ${JSON.stringify(value)}\n\n`).join("")}data: [DONE]\n\n`,
	contentType: "text/event-stream",
});

function recording(model: string, stream: boolean): FormData {
	const form = new FormData();
	form.append("file", new File([wavOf(3)], "talk.wav"));
	form.append("model", model);
	if (stream) form.append("stream", "true");
	return form;
}

const transcript = (usage: unknown) => json({ text: "hello", duration: 3, usage });
const transcriptEvents = (usage: unknown) =>
	events({ type: "transcript.text.delta", delta: "hello" }, { type: "transcript.text.done", text: "hello", usage });

export const TARGETS: readonly Target[] = [
	{
		name: "chat",
		path: "/v1/chat/completions",
		model: "chat",
		request: (model = "chat") => ({ model, messages: [{ role: "user", content: PROMPT }], max_tokens: 8 }),
		answer: (usage) => json({ choices: [{ ...choice, message: { role: "assistant", content: "hi" } }], usage }),
		mayExceed: true,
	},
	{
		name: "chat, streamed",
		path: "/v1/chat/completions",
		model: "chat",
		request: (model = "chat") => ({
			model,
			messages: [{ role: "user", content: PROMPT }],
			max_tokens: 8,
			n: 2,
			stream: true,
			stream_options: { include_usage: true },
		}),
		answer: (usage) =>
			events(
				{ choices: [{ ...choice, delta: { content: "hi" }, finish_reason: null }], usage },
				{ choices: [{ ...choice, delta: {} }] },
				{ choices: [{ ...choice, index: 1, delta: { content: "ho" } }] },
				{ choices: [], usage },
			),
		mayExceed: true,
	},
	{
		name: "completions",
		path: "/v1/completions",
		model: "chat",
		request: (model = "chat") => ({ model, prompt: PROMPT, max_tokens: 8 }),
		answer: (usage) => json({ choices: [{ ...choice, text: "hi" }], usage }),
		mayExceed: true,
	},
	{
		name: "completions, streamed",
		path: "/v1/completions",
		model: "chat",
		request: (model = "chat") => ({ model, prompt: PROMPT, max_tokens: 8, stream: true }),
		answer: (usage) =>
			events(
				{ choices: [{ ...choice, text: "hi", finish_reason: null }] },
				{ choices: [{ ...choice, text: "" }] },
				{ choices: [], usage },
			),
		mayExceed: true,
	},
	{
		name: "embeddings",
		path: "/v1/embeddings",
		model: "embedding",
		request: (model = "embedding") => ({ model, input: [PROMPT, "four"] }),
		answer: (usage) => json({ data: [0, 1].map((index) => ({ index, embedding: [0.5, 1] })), usage }),
		mayExceed: false,
	},
	{
		name: "rerank",
		path: "/v1/rerank",
		model: "rerank",
		request: (model = "rerank") => ({ model, query: PROMPT, documents: ["a", "bb"] }),
		answer: (usage) => json({ results: [0, 1].map((index) => ({ index, relevance_score: 0.5 })), usage }),
		mayExceed: false,
	},
	{
		name: "images",
		path: "/v1/images/generations",
		model: "image",
		request: (model = "image") => ({ model, prompt: PROMPT, n: 2 }),
		answer: (usage) => json({ data: [1, 2, 3].map(() => ({ b64_json: "aa==" })), usage }),
		mayExceed: false,
	},
	...["audio", "audio-tokens"].flatMap((model) => [
		{
			name: `transcriptions of ${model}`,
			path: "/v1/audio/transcriptions",
			model,
			request: (name = model) => recording(name, false),
			answer: transcript,
			mayExceed: false,
		},
		{
			name: `transcriptions of ${model}, streamed`,
			path: "/v1/audio/transcriptions",
			model,
			request: (name = model) => recording(name, true),
			answer: transcriptEvents,
			mayExceed: false,
		},
	]),
];

/** YAML of a deployment for each target, with a rate for every unit. `prefix` precedes the ids. */
export function deploymentsYaml(url: string, prefix = ""): string {
	const at = { url, dialect: "openai" as const };
	const tokens = 'input: "1", cached_input: "0.5", output: "2"';
	const one = (id: string, kind: string, rates: string, parameters = "") =>
		deployment({ id: prefix + id, kind, ...at, rates, parameters });
	return [
		one("chat", "chat", `${tokens}, request: "0.000001"`, "max_tokens, n, stop, temperature, tools, logprobs"),
		one("embedding", "embedding", 'input: "1"'),
		one("rerank", "rerank", 'input: "1", search: "0.002"'),
		one("image", "image", `${tokens}, image: "0.04"`, "n, size"),
		one("audio", "transcription", 'audio_second: "0.0001"', "language, prompt"),
		one("audio-tokens", "transcription", `${tokens}, audio_second: "0"`),
	].join("\n");
}

/** The last usage record of an answer, whole or streamed; undefined if it has none. */
export function usageInAnswer(text: string): Json | undefined {
	const pieces = text.startsWith("data:")
		? text.split("\n\n").flatMap((event) => (event.startsWith("data: {") ? [event.slice(6)] : []))
		: [text];
	let usage: Json | undefined;
	for (const piece of pieces) usage = ((JSON.parse(piece) as Json).usage as Json | null | undefined) ?? usage;
	return usage;
}
