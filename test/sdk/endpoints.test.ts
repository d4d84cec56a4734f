/** Both major versions of OpenAI's client use every endpoint except chats. */
import { beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import OpenAI6 from "openai6";
import { withService } from "../support/service.ts";
import { deployment, vectorOf, wavOf, withEndpoints } from "../support/upstream-endpoints.ts";

const upstream = withEndpoints("vllm");
const at = { url: upstream.url, dialect: "vllm" as const };
const tokens = 'input: "1", output: "2"';
const service = await withService({
	models: [
		deployment({ id: "acme/text", ...at, rates: tokens, parameters: "max_tokens, n, echo, logprobs" }),
		deployment({ id: "acme/embedding", kind: "embedding", ...at, rates: 'input: "1"', parameters: "dimensions" }),
		deployment({ id: "acme/image", kind: "image", ...at, rates: 'image: "0.01"', parameters: "n, size" }),
		deployment({ id: "acme/audio", kind: "transcription", ...at, rates: 'audio_second: "0.001"' }),
	].join("\n"),
	limits: "  breaker_failures_in_row: 100",
});

/** The error of a client call. The client sends nothing before its promise is awaited. */
async function failureOf(call: () => PromiseLike<unknown>): Promise<unknown> {
	try {
		return await call();
	} catch (error) {
		return error;
	}
}

const CLIENTS = [
	["openai 7", OpenAI],
	["openai 6", OpenAI6 as unknown as typeof OpenAI],
] as const;

describe.each(CLIENTS)("OpenAI's client %s", (_, Client) => {
	let client: OpenAI;
	let accountId: string;

	beforeAll(async () => {
		const customer = await service.customer();
		accountId = customer.accountId;
		client = new Client({ apiKey: customer.secret, baseURL: `${service.url}/v1`, maxRetries: 0 });
	});

	const file = () => new File([wavOf(3)], "talk.wav");

	test("reads completions, streamed or not", async () => {
		const whole = await client.completions.create({ model: "acme/text", prompt: ["a b", "c"], n: 2, logprobs: 1 });
		expect(whole.choices.map((choice) => choice.index)).toEqual([0, 1, 2, 3]);
		expect(whole.choices[3]?.text).toBe(" one two three");
		expect(whole.choices[0]?.logprobs?.tokens).toEqual([" one", " two", " three"]);
		expect(whole.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 12 });
		expect(whole._request_id).toStartWith("req_");
		const stream = await client.completions.create({
			model: "acme/text",
			prompt: "a b",
			stream: true,
			stream_options: { include_usage: true },
		});
		let text = "";
		let usage: OpenAI.CompletionUsage | null | undefined;
		for await (const chunk of stream) {
			text += chunk.choices[0]?.text ?? "";
			usage = chunk.usage ?? usage;
		}
		expect(text).toBe(" one two three");
		expect(usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 });
	});

	test("decodes embeddings from its default base64", async () => {
		const answer = await client.embeddings.create({ model: "acme/embedding", input: ["hello", "you"], dimensions: 3 });
		expect(answer.data.map((item) => item.embedding)).toEqual([vectorOf("hello"), vectorOf("you")]);
		expect(answer.usage.prompt_tokens).toBe(2);
		const floats = await client.embeddings.create({ model: "acme/embedding", input: "x", encoding_format: "float" });
		expect(floats.data[0]?.embedding).toEqual(vectorOf("x"));
	});

	test("reads images", async () => {
		const answer = await client.images.generate({ model: "acme/image", prompt: "a cat", n: 2, size: "512x512" });
		expect(answer.data?.map((image) => image.b64_json)).toEqual(["aGVsbG8=", "aGVsbG8="]);
		expect(answer.usage?.total_tokens).toBe(205);
	});

	test("reads transcriptions in all formats", async () => {
		const model = "acme/audio";
		const json = await client.audio.transcriptions.create({ model, file: file() });
		expect(json.text).toBe("Hello there, big world.");
		const text = await client.audio.transcriptions.create({ model, file: file(), response_format: "text" });
		expect(text as unknown as string).toBe("Hello there, big world.\n");
		const vtt = await client.audio.transcriptions.create({ model, file: file(), response_format: "vtt" });
		expect(vtt as unknown as string).toStartWith("WEBVTT");
		const verbose = await client.audio.transcriptions.create({ model, file: file(), response_format: "verbose_json" });
		expect(verbose.segments?.map((segment) => segment.end)).toEqual([2.5, 6.7]);
		const stream = await client.audio.transcriptions.create({ model, file: file(), stream: true });
		let heard = "";
		let done = "";
		for await (const event of stream) {
			if (event.type === "transcript.text.delta") heard += event.delta;
			if (event.type === "transcript.text.done") done = event.text;
		}
		expect([heard, done]).toEqual(["Hello there, big world.", "Hello there, big world."]);
	});

	test("throws its own error classes, and retries no final error", async () => {
		let calls = 0;
		const counting = (...args: Parameters<typeof fetch>) => {
			// Counts only requests to the service, because the client also calls `fetch` to test for form support.
			if (String(args[0]).startsWith(service.url)) calls += 1;
			return fetch(...args);
		};
		const patient = client.withOptions({ maxRetries: 2, fetch: counting });
		const before = upstream.requests.length;
		const unavailable = { status: 503, code: "service_unavailable" };
		expect(await failureOf(() => patient.batches.list())).toMatchObject(unavailable);
		expect(await failureOf(() => patient.files.create({ file: file(), purpose: "batch" }))).toMatchObject(unavailable);
		const wrongMode = await failureOf(() => patient.completions.create({ model: "acme/embedding", prompt: "x" }));
		expect(wrongMode).toMatchObject({ status: 404, code: "unsupported_mode" });
		const unknown = await failureOf(() => patient.embeddings.create({ model: "none", input: "x" }));
		expect(unknown).toBeInstanceOf(Client.NotFoundError);
		const bad = new Client({ apiKey: "sk_service_wrong", baseURL: `${service.url}/v1`, maxRetries: 0 });
		const refused = await failureOf(() => bad.embeddings.create({ model: "x", input: "x" }));
		expect(refused).toBeInstanceOf(Client.AuthenticationError);
		expect(calls).toBe(4);
		expect(upstream.requests.length).toBe(before);
	});

	test("is charged the price of each request", async () => {
		await service.settled();
		const rows = await service.usage(accountId);
		expect(new Set(rows.map((row) => row.endpoint))).toEqual(
			new Set(["completions", "embeddings", "image", "transcription"]),
		);
		const [first] = rows;
		expect(Number(first?.charged_nano_usd)).toBe(3 * 1_000 + 12 * 2_000);
	});
});
