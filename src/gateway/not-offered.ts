/** Paths of other interfaces and what to use here instead. The first match counts. */
const INSTEAD: readonly [RegExp, string][] = [
	[
		/^\/(?!v1\/)|^\/v1\/v1\//,
		"There is no such endpoint. The base address of a client ends with /v1, once: then it asks for /v1/chat/completions and the like.",
	],
	[
		/^\/v1\/responses\b/,
		"The responses interface is not offered. Use POST /v1/chat/completions: `input` becomes `messages`.",
	],
	[
		/^\/v1\/(assistants|threads)\b/,
		"The assistants interface is not offered. Use POST /v1/chat/completions and keep the conversation on your side.",
	],
	[
		/^\/v1\/(messages|complete)\b/,
		"The messages interface is not offered. Use an OpenAI-compatible client with POST /v1/chat/completions: the system prompt becomes the first message, `max_tokens` stays, a tool's `input_schema` becomes `function.parameters`.",
	],
	[
		/^\/v1\/chat\/completions\/./,
		"Chat completions are not stored. Keep the answer that POST /v1/chat/completions gives; what it cost is at GET /v1/usage/{id}.",
	],
	[
		/^\/v1\/images\/(edits|variations)\b/,
		"Images are not edited here. Use POST /v1/images/generations with a prompt that describes the whole picture.",
	],
	[
		/^\/v1\/audio\/translations\b/,
		"Translations of audio are not offered. Use POST /v1/audio/transcriptions, and POST /v1/chat/completions to translate the text.",
	],
	[
		/^\/v1\/audio\/speech\b/,
		"Speech is not offered. Of sound there is POST /v1/audio/transcriptions, which makes text of it.",
	],
	[
		/^\/v1\/moderations\b/,
		"Moderations are not offered. Ask a model for a verdict with POST /v1/chat/completions and `response_format`.",
	],
	[
		/^\/v1\/vector_stores\b/,
		"Vector stores are not offered. Use POST /v1/embeddings and POST /v1/rerank with a store of your own.",
	],
	[
		/^\/v1\/(fine_tuning|fine-tunes)\b/,
		"Fine-tuning is not offered. The models that can be used are at GET /v1/models.",
	],
	[
		/^\/v1\/realtime\b/,
		"The realtime interface is not offered. Use POST /v1/chat/completions with `stream`, and POST /v1/audio/transcriptions for sound.",
	],
	[/^\/v1\/(videos|video)\b/, "Video is not offered. The models that can be used are at GET /v1/models."],
	[
		/^\/v1\/(containers|evals|uploads|conversations)\b/,
		"This interface is not offered. What is: POST /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/audio/transcriptions, /v1/images/generations and /v1/rerank.",
	],
	[
		/^\/v1\/(organization|dashboard)\b/,
		"This interface is not offered. GET /v1/credits has the balance, GET /v1/key what the key may spend; the rest is in the console.",
	],
	[/^\/v1\/engines\b/, "Engines are models here: see GET /v1/models, and name one in the body's `model`."],
];

/** The 404 text for an unknown path. */
export function notOfferedText(pathname: string): string {
	return INSTEAD.find(([pattern]) => pattern.test(pathname))?.[1] ?? "There is no such endpoint.";
}
