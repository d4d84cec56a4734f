/** Sends every wrong value of every field to every endpoint: each gets an error that names the field, without a charge. */
import { describe, expect, test } from "bun:test";
import { errorOf } from "../support/chat.ts";
import { withService } from "../support/service.ts";
import { deployment, wavOf, withEndpoints } from "../support/upstream-endpoints.ts";
import { WRONG_CHAT } from "./wrong-chat.ts";

const upstream = withEndpoints("vllm");
const at = { url: upstream.url, dialect: "vllm" as const };
const tokens = 'input: "1", output: "2"';
const service = await withService({
	models: [
		deployment({ id: "text", ...at, rates: tokens, parameters: "max_tokens, n, echo, logprobs" }),
		deployment({ id: "embedding", kind: "embedding", ...at, rates: 'input: "1"', parameters: "dimensions" }),
		deployment({ id: "rerank", kind: "rerank", ...at, rates: 'search: "0.001"' }),
		deployment({ id: "image", kind: "image", ...at, rates: 'image: "0.01"', parameters: "n, size" }),
		deployment({ id: "audio", kind: "transcription", ...at, rates: 'audio_second: "0.001"' }),
	].join("\n"),
	limits: "  body_mb: 1",
});

/** A valid request, and invalid values for each of its fields. */
interface Family {
	readonly path: string;
	readonly valid: Record<string, unknown>;
	readonly wrong: Record<string, readonly unknown[]>;
}

const NO_TEXT = [1, true, [], {}, [[]], -1, [null]];
const NO_COUNT = [0, -1, 1.5, "1", [], {}, true, "NaN"];
const NO_FLAG = [1, "true", "", [], {}];
/** Invalid values for a prompt or input, which may be text, token ids, or a list of either. */
const NO_PROMPT = [null, undefined, 1, true, {}, [], [[]], [-1], [1.5], ["a", 1], [null]];
const NO_MODEL = ["no/such/model", "x".repeat(5_000), "../../etc/passwd", "__proto__", "\u0000"];
const MODEL = ["", 1, [], {}, true, null, undefined, ...NO_MODEL];

const FAMILIES: readonly Family[] = [
	{
		path: "/v1/chat/completions",
		valid: { model: "text", messages: [{ role: "user", content: "hällo" }] },
		wrong: { ...WRONG_CHAT, model: [...MODEL, "embedding"] },
	},
	{
		path: "/v1/completions",
		valid: { model: "text", prompt: "hello" },
		wrong: {
			model: [...MODEL, "embedding"],
			prompt: [...NO_PROMPT, [1, "a"], [[1], "a"], [[], [1]], [2 ** 31]],
			stream: NO_FLAG,
			stream_options: WRONG_CHAT.stream_options ?? [],
			max_tokens: NO_COUNT,
			n: [...NO_COUNT, 129],
			best_of: [...NO_COUNT, 129],
			echo: NO_FLAG,
			suffix: NO_TEXT,
			logprobs: [-1, 21, 1.5, "1", true],
			temperature: [-0.1, 2.1, "1", [], {}],
			top_p: [-1, 1.1, "x"],
			seed: [1.5, "1", 1e300],
			stop: [1, [1], {}, Array(17).fill("x")],
			logit_bias: [1, "x", [1], { 1: "x" }, { 1: 1e9 }],
		},
	},
	{
		path: "/v1/embeddings",
		valid: { model: "embedding", input: "hello" },
		wrong: {
			model: [...MODEL, "text"],
			input: [...NO_PROMPT, "", [""], ["a", ""], [[1], []], Array(2049).fill("x")],
			encoding_format: ["binary", 1, [], "Base64"],
			dimensions: [...NO_COUNT, 1e300],
		},
	},
	{
		path: "/v1/rerank",
		valid: { model: "rerank", query: "q", documents: ["a", "b"] },
		wrong: {
			model: [...MODEL, "image"],
			query: [...NO_TEXT, null, undefined, ""],
			documents: [null, undefined, [], "a", {}, [1], [{}], [{ text: 1 }], [null], [["a"]], Array(10_001).fill("x")],
			top_n: NO_COUNT,
			return_documents: NO_FLAG,
		},
	},
	{
		path: "/v1/images/generations",
		valid: { model: "image", prompt: "a cat" },
		wrong: {
			model: [...MODEL, "audio"],
			prompt: [...NO_TEXT, null, undefined, "", "x".repeat(32_001)],
			n: [...NO_COUNT, 11],
			size: [...NO_TEXT, "x".repeat(33)],
			response_format: ["jpeg", 1, []],
			stream: [true, ...NO_FLAG],
			output_compression: [-1, 101, "x"],
		},
	},
];

/** Form fields of a transcription; no value is valid. */
const FORM: Readonly<Record<string, readonly (string | File)[]>> = {
	model: ["", "none", "text", "\u0000", "x".repeat(5_000)],
	response_format: ["docx", "JSON", "diarized_json", "x".repeat(1_000)],
	stream: ["yes", "1", "TRUE"],
	temperature: ["2", "-1", "hot", "1e9", "NaN"],
	language: ["x".repeat(65)],
	prompt: ["x".repeat(32_001)],
	file: ["text", new File([], "a.wav")],
};

function formWith(name: string, value: string | File): FormData {
	const form = new FormData();
	for (const [field, valid] of Object.entries({ model: "audio", file: new File([wavOf(1)], "a.wav") }))
		if (field !== name) form.append(field, valid);
	form.append(name, value);
	return form;
}

async function expectRefused(path: string, secret: string, name: string, value: unknown, body: unknown) {
	const { status, error } = await errorOf(await service.post(path, secret, body));
	const seen = [name, JSON.stringify(value)?.slice(0, 60), status, error.param];
	expect([...seen, status === 400 || (name === "model" && status === 404)]).toEqual([...seen, true]);
	expect([...seen, String(error.param).startsWith(name)]).toEqual([...seen, true]);
}

describe.each([...FAMILIES.map(({ path }) => path), "/v1/audio/transcriptions"])("%s", (path) => {
	test("an error names the field with the wrong value, and nothing is charged", async () => {
		const { secret, accountId } = await service.customer();
		const before = upstream.requests.length;
		const family = FAMILIES.find((one) => one.path === path);
		for (const [name, values] of Object.entries(family?.wrong ?? FORM))
			for (const value of values) {
				const more = name === "stream_options" ? { stream: true } : {};
				const body = family ? { ...family.valid, ...more, [name]: value } : formWith(name, value as string | File);
				await expectRefused(path, secret, name, value, body);
			}
		expect(upstream.requests.length).toBe(before);
		await service.settled();
		expect(await service.usage(accountId)).toEqual([]);
	});
});
