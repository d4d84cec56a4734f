/** Models with scripted upstreams, and chat calls to them, for tests without their own catalogue. */
import type { CatalogSnapshot, Model, RateCard, UpstreamSpec } from "../../src/catalog/model.ts";
import { DEFAULT_LIMITS, type ServiceLimits } from "../../src/catalog/service-limits.ts";
import type { PicoUsdPerUnit } from "../../src/money/nano-usd.ts";
import type { CallContext } from "../../src/upstream/call/attempt.ts";
import type { AnswerStream } from "../../src/upstream/call/stream-wire.ts";
import type { ChatChunk, ChatReply } from "../../src/upstream/chat/chat-answer.ts";
import { type ChatCallInput, chatStream, unstreamedChat } from "../../src/upstream/chat/chat-call.ts";
import { Prompt } from "../../src/upstream/prompt.ts";
import type { Upstreams } from "../../src/upstream/upstreams.ts";
import { sameRates } from "./every-rate.ts";

export function modelOver(upstreams: readonly UpstreamSpec[], more: Partial<Model> = {}): Model {
	const id = more.id ?? "test-model";
	const rateCard: RateCard = { id: `${id}@1`, version: 1, ...sameRates(0 as PicoUsdPerUnit) };
	return {
		id,
		aliases: [],
		name: id,
		kind: "chat",
		modes: new Set(["chat"]),
		inputModalities: new Set(["text"]),
		outputModalities: new Set(["text"]),
		imageUrls: "data_only",
		templateOverheadTokens: 64,
		textNormalization: "nfkc",
		contextLength: 8192,
		maxOutputTokens: 1024,
		parameters: new Set(["temperature", "max_tokens", "stop", "n", "tools"]),
		unsupportedParameters: "ignore",
		rateCard,
		upstreams,
		createdS: 0,
		...more,
	};
}

export function snapshotOf(...models: Model[]): CatalogSnapshot {
	return {
		revision: 1,
		models: new Map(models.map((model) => [model.id, model])),
		aliases: new Map(),
		retired: new Map(),
		routes: new Map(),
	};
}

/** A chat with its caller. */
export type ChatCall = CallContext & ChatCallInput;

export function chatCall({ prompt, ...more }: Partial<Omit<ChatCall, "prompt">> & { prompt?: unknown } = {}): ChatCall {
	return {
		fields: {},
		prompt: new Prompt(prompt ?? [{ role: "user", content: "one two three" }]),
		maxOutputTokens: 100,
		choices: 1,
		signal: new AbortController().signal,
		routed: undefined,
		requestId: "req_test",
		uuid: "00000000-0000-7000-8000-000000000000",
		accountId: "acc_test",
		patient: false,
		trace: undefined,
		request: { prompt, ...more.fields },
		...more,
	};
}

export function openChat(upstreams: Upstreams, model: Model, call: ChatCall): AnswerStream<ChatChunk> {
	return upstreams.open(model, chatStream(model, call, call));
}

export function askChat(
	upstreams: Upstreams,
	model: Model,
	call: ChatCall,
): Promise<{ reply: ChatReply; replica: string }> {
	return upstreams.call(model, unstreamedChat(model, call, call));
}

/** Returns the default limits with a test's changes. */
export function limitsWith(more: Partial<ServiceLimits>): ServiceLimits {
	return { ...DEFAULT_LIMITS, ...more };
}

/** Reads a stream's events to the end; `error` is undefined unless the stream failed. */
export async function collect(stream: AnswerStream<ChatChunk>) {
	const [chunks, text, finish]: [ChatChunk[], string[], string[]] = [[], [], []];
	const collected = { chunks, text, finish, outputBytes: 0, error: undefined as unknown };
	try {
		for (;;) {
			const chunks = await stream.next();
			if (chunks === null) return collected;
			for (const chunk of chunks) {
				collected.chunks.push(chunk);
				collected.outputBytes += chunk.outputBytes;
				for (const { index, delta, finish_reason } of chunk.choices) {
					collected.text[index] = (collected.text[index] ?? "") + (delta.content ?? "");
					if (finish_reason !== null) collected.finish[index] = finish_reason;
				}
			}
		}
	} catch (error) {
		return { ...collected, error };
	}
}
