/**
 * Sends generated wrong requests to every endpoint: each gets an error in the documented shape, never a 5xx, a charge
 * or an upstream call. A failure prints its seed.
 */
import { describe, expect, test } from "bun:test";
import { LONG } from "../support/long-form.ts";
import { createRandom, type Random } from "../support/random.ts";
import { withService } from "../support/service.ts";
import { deployment, wavOf, withEndpoints } from "../support/upstream-endpoints.ts";
import { WRONG_CHAT } from "./wrong-chat.ts";

const SEED = Number(process.env.SEED ?? 20_261_121);
const ROUNDS = LONG ? 220 : 80;

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
		wrong: { ...WRONG_CHAT, model: [...MODEL, "embedding"], stream_options: [{}, { include_usage: true }, 1, "x"] },
	},
	{
		path: "/v1/completions",
		valid: { model: "text", prompt: "hello" },
		wrong: {
			model: [...MODEL, "embedding"],
			prompt: [...NO_PROMPT, [1, "a"], [[1], "a"], [[], [1]], [2 ** 31]],
			stream: NO_FLAG,
			stream_options: [{}, { include_usage: true }, 1, "x"],
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

interface Broken {
	readonly body: string | Uint8Array<ArrayBuffer>;
	readonly type: string;
	readonly what: string;
}

const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

/** Overwrites a structural byte, so that the JSON is invalid or means something else. */
function damaged(random: Random, text: string): Uint8Array<ArrayBuffer> {
	const bytes = new Uint8Array(Buffer.from(text));
	const structural = [...bytes.keys()].filter((at) => '{}[]:"'.includes(String.fromCharCode(bytes[at] as number)));
	bytes[random.pick(structural)] = random.pick([0x00, 0x01, 0x23, 0xff, 0x80]);
	return bytes;
}

function breakIt(random: Random, { valid, wrong }: Family): Broken {
	const type = "application/json";
	const text = JSON.stringify(valid);
	const ways: (() => Broken)[] = [
		() => ({ what: "cut", type, body: text.slice(0, 1 + Math.floor(random.fraction() * (text.length - 1))) }),
		() => ({ what: "no object", type, body: random.pick(["", "null", "[]", "1", '"x"', "[{}]", "true", "\ufeff"]) }),
		() => ({
			what: "deep",
			type,
			body: `{"model":"text","x":${nested(200 + Math.floor(random.fraction() * 50_000))}}`,
		}),
		() => ({ what: "byte", type, body: damaged(random, text) }),
		() => ({ what: "large", type, body: `${text.slice(0, -1)},"x":"${"y".repeat(1024 * 1024)}"}` }),
		() => ({ what: "bytes", type, body: new Uint8Array(Array.from({ length: 50 }, () => random.int(0, 255))) }),
		() => ({
			what: "type",
			type: random.pick(["text/plain", "application/xml", "multipart/form-data", "x"]),
			body: text,
		}),
		() => ({ what: "words behind", type, body: `${text} and more` }),
	];
	if (random.fraction() < 0.25) return random.pick(ways)();
	const field = random.pick(Object.keys(wrong));
	const value = random.pick(wrong[field] as unknown[]);
	const body = JSON.stringify({ ...valid, [field]: value });
	return { what: `${field} = ${JSON.stringify(value)?.slice(0, 60)}`, type, body };
}

async function assertRefused(response: Response, what: string): Promise<void> {
	const text = await response.text();
	const seen = `seed ${SEED}, ${what}: ${response.status} ${text.slice(0, 300)}`;
	if (response.status < 400 || response.status >= 500) throw new Error(seen);
	expect(response.headers.get("content-type")).toBe("application/json");
	expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
	const body = JSON.parse(text);
	expect(Object.keys(body)).toEqual(["error"]);
	const { message, type, param, code } = body.error;
	if (typeof message !== "string" || message === "" || typeof type !== "string" || typeof code !== "string")
		throw new Error(seen);
	if (param !== null && (typeof param !== "string" || param.length > 128)) throw new Error(seen);
}

describe.each(FAMILIES)("$path", (family) => {
	test(`refuses ${ROUNDS} wrong requests in the error shape without a charge`, async () => {
		const { secret, accountId } = await service.customer();
		const random = createRandom(SEED);
		const before = upstream.requests.length;
		for (let round = 0; round < ROUNDS; round += 1) {
			const { body, type, what } = breakIt(random, family);
			const headers = { authorization: `Bearer ${secret}`, "content-type": type };
			const response = await fetch(`${service.url}${family.path}`, { method: "POST", headers, body });
			await assertRefused(response, what);
		}
		expect(upstream.requests.length).toBe(before);
		await service.settled();
		expect(await service.usage(accountId)).toEqual([]);
		const choices = [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "hi" } }];
		if (family.path.endsWith("/chat/completions")) upstream.next(() => Response.json({ choices }));
		expect((await service.post(family.path, secret, family.valid)).status).toBe(200);
	});
});

describe("/v1/audio/transcriptions", () => {
	const FIELDS: Record<string, readonly string[]> = {
		model: ["", "none", "text", "\u0000", "x".repeat(5_000)],
		response_format: ["docx", "JSON", "diarized_json", "x".repeat(1_000)],
		stream: ["yes", "1", "TRUE"],
		temperature: ["2", "-1", "hot", "1e9", "NaN"],
		language: ["x".repeat(65)],
		prompt: ["x".repeat(32_001)],
	};

	function broken(random: Random): { body: FormData | string | Uint8Array<ArrayBuffer>; type?: string; what: string } {
		const form = new FormData();
		const way = random.int(0, 7);
		if (way === 0) return { what: "JSON", type: "application/json", body: '{"model":"audio"}' };
		if (way === 1) return { what: "no boundary", type: "multipart/form-data", body: "--x\r\n" };
		if (way === 2) {
			const rubbish = new Uint8Array(Array.from({ length: 300 }, () => random.int(0, 255)));
			return { what: "rubbish", type: "multipart/form-data; boundary=x", body: rubbish };
		}
		if (way === 3) {
			form.append("model", "audio");
			return { what: "no file", body: form };
		}
		if (way === 4) {
			form.append("model", "audio");
			form.append("file", random.fraction() < 0.5 ? "text" : (new File([], "a.wav") as unknown as string));
			return { what: "empty file", body: form };
		}
		if (way === 5) {
			form.append("file", new File([new Uint8Array(1_200_000)], "a.wav"));
			form.append("model", "audio");
			return { what: "too large", body: form };
		}
		const field = random.pick(Object.keys(FIELDS));
		const value = random.pick(FIELDS[field] as string[]);
		form.append("file", new File([wavOf(1)], "a.wav"));
		if (field !== "model") form.append("model", "audio");
		form.append(field, value);
		return { what: `${field} = ${value.slice(0, 40)}`, body: form };
	}

	test(`refuses ${ROUNDS} wrong forms in the error shape without a charge`, async () => {
		const { secret, accountId } = await service.customer();
		const random = createRandom(SEED + 1);
		const before = upstream.requests.length;
		for (let round = 0; round < ROUNDS; round += 1) {
			const { body, type, what } = broken(random);
			const headers: Record<string, string> = { authorization: `Bearer ${secret}` };
			if (type !== undefined) headers["content-type"] = type;
			await assertRefused(
				await fetch(`${service.url}/v1/audio/transcriptions`, { method: "POST", headers, body: body as BodyInit }),
				what,
			);
		}
		expect(upstream.requests.length).toBe(before);
		await service.settled();
		expect(await service.usage(accountId)).toEqual([]);
	});
});

describe("look-ups", () => {
	test(`refuses ${ROUNDS} wrong look-ups in the error shape`, async () => {
		const { secret } = await service.customer();
		const random = createRandom(SEED + 2);
		const paths = ["/v1/usage/", "/v1/models/", "/v1/key/", "/v1/credits/", "/v1/usage/x/", "/v1/"];
		const ends = ["%00", "%", "%E0%A4%A", "req_", "'; drop table account; --", "a".repeat(3_000), "é"];
		for (let round = 0; round < ROUNDS; round += 1) {
			const path = random.pick(paths) + random.pick(ends);
			const keys = [secret, undefined, `${secret}x`, "sk_service_x", "Bearer", "x".repeat(600), secret.slice(0, -1)];
			const key = random.fraction() < 0.5 ? secret : random.pick(keys);
			const response = await service.get(path, key);
			await assertRefused(response, `${path.slice(0, 80)} ${key?.slice(0, 15)}`);
		}
	});
});
