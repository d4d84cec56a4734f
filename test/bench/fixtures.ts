/** What the benches of single steps work on: the same bytes in every run, made from one seed. */

import type { Model } from "../../src/catalog/model.ts";
import type { KeyDigest } from "../../src/keys/digest.ts";
import { createDigest } from "../../src/keys/digest.ts";
import type { Secret } from "../../src/keys/secret.ts";
import type { AdmittedEvent, SettledEvent } from "../../src/ledger/event.ts";
import { nanoUsd, type PicoUsdPerUnit } from "../../src/money/nano-usd.ts";
import { createRandom } from "../support/random.ts";
import { modelOver } from "../support/upstream-catalog.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "./prompts.ts";

export const SEED = 20_261_121;
export const STREAM_TOKENS = 100;

export interface Fixtures {
	readonly model: Model;
	readonly secrets: readonly Secret[];
	readonly digests: readonly KeyDigest[];
	/** Bodies of chat requests as text. */
	readonly bodies: { readonly small: string; readonly kb100: string; readonly mb1: string };
	/** A whole answer of a model server, about 600 bytes. */
	readonly answer: string;
	/** A streamed answer of 100 tokens in the pieces in which a network delivers it: not at the ends of events. */
	readonly pieces: readonly Uint8Array[];
	/** The `data` payloads of the same stream. */
	readonly payloads: readonly string[];
	readonly admitted: readonly AdmittedEvent[];
	readonly settled: readonly SettledEvent[];
}

const EVENTS = 1_000;
const SECRETS = 64;
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** A generator of numbers below `limit`, the same after the same seed. */
export function createDice(seed: number): (limit: number) => number {
	const random = createRandom(seed);
	return (limit) => random.int(0, limit - 1);
}

export function createFixtures(seed = SEED): Fixtures {
	const dice = createDice(seed);
	const digest = createDigest("p".repeat(64));
	const secrets = Array.from({ length: SECRETS }, () => secretFrom(dice));
	const payloads = streamPayloads(dice);
	const admitted = Array.from({ length: EVENTS }, () => admittedFrom(dice));
	return {
		model: benchModel(),
		secrets,
		digests: secrets.map(digest),
		bodies: {
			small: chatBody("bench-model", SMALL_PROMPT_BYTES),
			kb100: chatBody("bench-model", 100_000),
			mb1: chatBody("bench-model", 1_000_000),
		},
		answer: wholeAnswer(dice),
		pieces: cutAnywhere(Buffer.from(payloads.map((payload) => `data: ${payload}\n\n`).join("")), dice),
		payloads,
		admitted,
		settled: admitted.map((event) => settledFrom(event, dice)),
	};
}

function benchModel(): Model {
	const rate = (pico: number) => pico as PicoUsdPerUnit;
	const free = rate(0);
	return modelOver(
		[
			{
				url: "http://127.0.0.1:9/v1",
				apiKey: null,
				model: "served",
				dialect: "openai",
				maxConcurrency: 256,
				keepAlive: true,
			},
		],
		{
			id: "bench-model",
			contextLength: 2_000_000,
			parameters: new Set(["temperature", "max_tokens"]),
			rateCard: {
				id: "bench-model@1",
				version: 1,
				input: rate(230_000),
				cachedInput: rate(60_000),
				output: rate(400_000),
				request: free,
				image: free,
				audioSecond: free,
				search: free,
			},
		},
	);
}

/** A secret with a right checksum, as `newSecret` makes it from real randomness. */
function secretFrom(dice: (limit: number) => number): Secret {
	let body = "sk_service_";
	for (let place = 0; place < 40; place++) body += BASE62.charAt(dice(62));
	let rest = Bun.hash.crc32(body);
	let checksum = "";
	for (let place = 0; place < 6; place++) {
		checksum = BASE62.charAt(rest % 62) + checksum;
		rest = Math.floor(rest / 62);
	}
	return (body + checksum) as Secret;
}

const WORDS = [
	"river",
	"stone",
	"market",
	"über",
	"naïve",
	"window",
	"日本",
	"garden",
	"reason",
	"\\n",
	'\\"quoted\\"',
];

function streamPayloads(dice: (limit: number) => number): string[] {
	const event = (choices: string, more = "") =>
		`{"id":"chatcmpl-upstream","object":"chat.completion.chunk","created":1700000000,"model":"served","choices":${choices}${more}}`;
	const payloads = [
		event('[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]'),
	];
	for (let token = 0; token < STREAM_TOKENS; token++) {
		const text = WORDS[dice(WORDS.length)];
		payloads.push(event(`[{"index":0,"delta":{"content":" ${text}"},"logprobs":null,"finish_reason":null}]`));
	}
	payloads.push(event('[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]'));
	const usage = `{"prompt_tokens":50,"completion_tokens":${STREAM_TOKENS},"total_tokens":${50 + STREAM_TOKENS}}`;
	payloads.push(event("[]", `,"usage":${usage}`), "[DONE]");
	return payloads;
}

/** Pieces of 40 to 400 bytes. */
function cutAnywhere(bytes: Buffer, dice: (limit: number) => number): Uint8Array[] {
	const pieces = [];
	for (let at = 0; at < bytes.length; ) {
		const end = Math.min(bytes.length, at + 40 + dice(360));
		pieces.push(new Uint8Array(bytes.subarray(at, end)));
		at = end;
	}
	return pieces;
}

function wholeAnswer(dice: (limit: number) => number): string {
	let content = "";
	while (content.length < 300) content += `${WORDS[dice(9)]} `;
	return JSON.stringify({
		id: "chatcmpl-upstream",
		object: "chat.completion",
		created: 1_700_000_000,
		model: "served",
		choices: [{ index: 0, message: { role: "assistant", content }, logprobs: null, finish_reason: "stop" }],
		usage: { prompt_tokens: 50, completion_tokens: 60, total_tokens: 110 },
	});
}

function admittedFrom(dice: (limit: number) => number): AdmittedEvent {
	const hex = () => dice(0x10000).toString(16).padStart(4, "0");
	return {
		id: `${hex()}${hex()}-${hex()}-7${hex().slice(1)}-8${hex().slice(1)}-${hex()}${hex()}${hex()}`,
		account: "acc_01JD3X5T8Z6Q4W2N9M7K1V0B3C",
		key: "key_01JD3X5T8Z6Q4W2N9M7K1V0B3C",
		model: "bench-model",
		card: "bench-model@1",
		endpoint: "chat",
		streamed: dice(2) === 1,
		reserved: nanoUsd(100_000 + dice(100_000)),
		at: 1_790_000_000_000 + dice(1_000_000),
	};
}

function settledFrom(event: AdmittedEvent, dice: (limit: number) => number): SettledEvent {
	return {
		...event,
		charged: nanoUsd(1 + dice(100_000)),
		off: nanoUsd(0),
		basis: "exact",
		ending: "finished",
		status: 200,
		prompt: 50,
		cached: 0,
		completion: 1 + dice(200),
		reasoning: 0,
		units: 0,
		replica: "bench-model#0",
		first: 1 + dice(100) / 8,
		ms: 20 + dice(1000) / 8,
	};
}
