/** Compares the reservation for a body with the work that the sent body causes at a model server. */

import { type ParseError, visit } from "jsonc-parser";
import type { Quantities } from "../../src/admission/price.ts";
import { systemClock } from "../../src/base/clock.ts";
import { Fault } from "../../src/base/fault.ts";
import { checkJsonStructure, type JsonStructure } from "../../src/base/json-structure.ts";
import type { DialectName, Model } from "../../src/catalog/model.ts";
import { DEFAULT_LIMITS } from "../../src/catalog/service-limits.ts";
import { shortenTexts } from "../../src/gateway/body/shortened-json.ts";
import { chat, readChatRequest } from "../../src/gateway/chat/chat-request.ts";
import { completions, readCompletionRequest } from "../../src/gateway/completions/completions.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";
import { generationBody } from "../../src/upstream/generation-request.ts";
import { createReplica } from "../../src/upstream/replicas/replica.ts";
import { modelOver } from "../support/upstream-catalog.ts";
import { UPSTREAM_SPEC } from "../support/upstream-set.ts";
import { LIMIT_NAMES } from "./body-text.ts";

const PARAMETERS = ["temperature", "stop", "seed", "tools", "tool_choice", "response_format", "max_tokens", "logprobs"];
const TEXT_DIALECTS = Object.keys(DIALECTS).filter((name) => name !== "tei") as DialectName[];
/** Fields from which a chat template may add tokens to the messages. */
const RENDERED = ["tools", "tool_choice", "response_format"];

const targets = TEXT_DIALECTS.flatMap((dialect) =>
	[true, false].map((many) => {
		const spec = { ...UPSTREAM_SPEC, model: "served", dialect };
		const model = modelOver([spec], {
			parameters: new Set(many ? [...PARAMETERS, "n", "max_completion_tokens"] : PARAMETERS),
			inputModalities: new Set(["text", "image"]),
			contextLength: 10_000_000,
		});
		const options = {
			modelId: model.id,
			alias: "test-model#0",
			spec: model.upstreams[0] as Model["upstreams"][number],
		};
		return {
			dialect,
			model,
			replica: createReplica({ clock: systemClock }, { ...options, limits: () => DEFAULT_LIMITS } as never),
		};
	}),
);

/** Sends the body to every target and returns how many accepted it. Throws if one gets more work than was reserved. */
export function judgeBody(kind: "chat" | "completions", text: string): number {
	let taken = 0;
	for (const { dialect, model, replica } of targets) {
		const read = refusedOr(() => readFor(kind, text, model));
		if (read === undefined) continue;
		taken += 1;
		const { bound, prompt, maxOutputTokens, n, fields, stream } = read;
		const { parameters } = model;
		const sent = generationBody(replica, { kind, fields, prompt, maxOutputTokens, n, parameters }, stream);
		compare(sent, { kind, dialect, model, bound, prompts: read.prompts });
	}
	return taken;
}

function refusedOr<T>(read: () => T): T | undefined {
	try {
		return read();
	} catch (error) {
		if (error instanceof Fault) return undefined;
		throw error;
	}
}

function readFor(kind: "chat" | "completions", text: string, model: Model) {
	if (kind === "chat") {
		const raw = (checkJsonStructure(text, "messages") as JsonStructure).field();
		const short = shortenTexts(text, raw);
		const input = readChatRequest(JSON.parse(short.text), model, raw, short.leftOut);
		const { prompt, maxOutputTokens, choices, fields, stream } = input;
		return { bound: chat.upperBound(input, model), prompt, maxOutputTokens, n: choices, fields, stream, prompts: 1 };
	}
	const input = readCompletionRequest(JSON.parse(text) as Record<string, unknown>, model);
	const { prompt, maxOutputTokens, shape, fields, stream } = input;
	return { bound: completions.upperBound(input, model), prompt, maxOutputTokens, ...shape, fields, stream };
}

interface Reserved {
	readonly kind: "chat" | "completions";
	readonly dialect: DialectName;
	readonly model: Model;
	readonly bound: Quantities;
	readonly prompts: number;
}

function compare(sent: string, { kind, dialect, model, bound, prompts }: Reserved): void {
	const { value, doubled, errors } = readOtherwise(sent);
	const differs: (what: string) => never = (what) => {
		throw new Error(`${dialect}: ${what}\nsent ${sent.slice(0, 2_000)}`);
	};
	if (errors.length > 0 || !(value instanceof Map)) differs("what is sent is no JSON object to another reader");
	if (doubled.length > 0) differs(`names stand twice: ${doubled.join(", ")}`);

	const limitField = kind === "chat" ? DIALECTS[dialect].limitField(model.parameters) : "max_tokens";
	const limits = [...value.keys()].filter((name) => LIMIT_NAMES.includes(name));
	if (limits.join() !== limitField) differs(`limits under ${limits.join(", ") || "no name"}`);
	const limit = value.get(limitField);
	const n = value.get("n") ?? 1;
	if (!Number.isSafeInteger(limit) || (limit as number) < 1 || (limit as number) > model.maxOutputTokens)
		differs(`limit ${limit}`);
	if (!Number.isSafeInteger(n) || (n as number) < 1) differs(`${n} choices`);
	const completion = (limit as number) * (n as number) * prompts;
	if (completion > bound.completionTokens) differs(`may generate ${completion}, reserved ${bound.completionTokens}`);

	const prompt = value.get(kind === "chat" ? "messages" : "prompt");
	const rendered = RENDERED.map((name) => value.get(name));
	const bytes = textBytesOf(prompt) + (kind === "chat" ? textBytesOf(rendered) : 0);
	if (kind === "chat" && bytes > bound.promptTokens)
		differs(`prompt of ${bytes} bytes, reserved ${bound.promptTokens}`);
	if (kind === "completions" && promptTokensOf(prompt) > bound.promptTokens)
		differs(`prompt of ${promptTokensOf(prompt)} tokens, reserved ${bound.promptTokens}`);

	const own = new Set(["model", "messages", "prompt", "stream", "stream_options", "n", limitField]);
	const foreign = [...value.keys()].filter((name) => !own.has(name) && !model.parameters.has(name));
	if (foreign.length > 0) differs(`fields that nobody listed: ${foreign.join(", ")}`);
	if (value.get("model") !== "served") differs("another model");
}

/** Prompt tokens with a vocabulary of one token per byte. Token ids count as they are. */
function promptTokensOf(prompt: unknown): number {
	if (typeof prompt === "string") return Buffer.byteLength(prompt);
	if (typeof prompt === "number") return 1;
	return (prompt as unknown[]).reduce<number>((sum, one) => sum + promptTokensOf(one), 0);
}

/** A body as an independent parser reads it. */
interface ReadBody {
	readonly value: unknown;
	/** Names that occur twice in an object, at any level. */
	readonly doubled: readonly string[];
	readonly errors: readonly ParseError[];
}

/** Parses by events, which show repeated names. Unlike in JSON.parse, the first value of a name counts. */
function readOtherwise(text: string): ReadBody {
	const doubled: string[] = [];
	const errors: ParseError[] = [];
	const stack: { container: Map<string, unknown> | unknown[]; name: string }[] = [];
	let root: unknown;

	function put(value: unknown): void {
		const top = stack.at(-1);
		if (top === undefined) root = value;
		else if (Array.isArray(top.container)) top.container.push(value);
		else if (top.container.has(top.name)) doubled.push(top.name);
		else top.container.set(top.name, value);
	}
	const open = (container: Map<string, unknown> | unknown[]) => {
		put(container);
		stack.push({ container, name: "" });
	};

	visit(
		text,
		{
			onObjectBegin: () => open(new Map()),
			onArrayBegin: () => open([]),
			onObjectEnd: () => void stack.pop(),
			onArrayEnd: () => void stack.pop(),
			onObjectProperty(name) {
				(stack.at(-1) as { name: string }).name = name;
			},
			onLiteralValue: put,
			onError: (error, offset, length) => void errors.push({ error, offset, length }),
		},
		{ disallowComments: true, allowTrailingComma: false },
	);
	return { value: root, doubled, errors };
}

/** UTF-8 bytes of all texts in a value. Other values count with the bytes of their JSON. */
function textBytesOf(value: unknown): number {
	if (typeof value === "string") return Buffer.byteLength(value);
	if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + textBytesOf(one), 0);
	if (value instanceof Map) return [...value.values()].reduce<number>((sum, one) => sum + textBytesOf(one), 0);
	return value === null || value === undefined ? 0 : String(value).length;
}
