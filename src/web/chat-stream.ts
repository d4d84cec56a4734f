import { EventSourceParserStream } from "eventsource-parser/stream";
import { type JsonUsd, type NanoUsd, nanoUsdOfJson } from "../money/nano-usd.ts";
import { ApiError, sendRequest } from "./http.ts";
import { t } from "./texts.tsx";

export interface ChatUsage {
	readonly promptTokens: number;
	readonly completionTokens: number;
	readonly costNanoUsd: NanoUsd | null;
}

/** A tool call. `input` is the arguments as the model wrote them, perhaps invalid JSON. */
export interface ToolCall {
	readonly id: string;
	readonly name: string;
	readonly input: string;
}

/** Browsers report failed and broken connections alike, so this error cannot say that nothing was sent. */
const unanswered = () =>
	new ApiError(
		t(
			"The connection broke before a response arrived. The request may have been charged: check the request log before you send it again.",
		),
		{ status: 0, code: "unanswered" },
	);
/** Longest event that is parsed. No chat chunk is longer, so the stream then counts as interrupted. */
const EVENT_CHARS_MAX = 4_000_000;

/**
 * Streams a chat completion. Throws ApiError for an error status; returns normally when `signal` aborts. `error` is the
 * message of the error event that ended the stream.
 */
export async function streamChat(
	address: string,
	body: Record<string, unknown>,
	signal: AbortSignal,
	onText: (text: string, kind: "answer" | "thought") => void,
) {
	const streamed = { ...body, stream: true, stream_options: { include_usage: true } };
	const response = await sendRequest(address, { method: "POST", body: JSON.stringify(streamed), signal }, unanswered);
	const requestId = response.headers.get("x-request-id");
	const calls = new Map<number, ToolCall>();
	let usage: ChatUsage | undefined;
	let finishReason: string | null = null;
	let error: string | undefined;
	try {
		for await (const data of events(response)) {
			if (data === "[DONE]") break;
			const event = JSON.parse(data) as Event;
			if (event.error?.message) error = event.error.message;
			const choice = event.choices?.[0];
			if (choice?.delta?.reasoning_content) onText(choice.delta.reasoning_content, "thought");
			if (choice?.delta?.content) onText(choice.delta.content, "answer");
			for (const piece of choice?.delta?.tool_calls ?? []) addPiece(calls, piece);
			if (choice?.finish_reason) finishReason = choice.finish_reason;
			if (event.usage) {
				usage = {
					promptTokens: event.usage.prompt_tokens ?? 0,
					completionTokens: event.usage.completion_tokens ?? 0,
					costNanoUsd: event.usage.cost === undefined ? null : nanoUsdOfJson(event.usage.cost),
				};
			}
		}
	} catch (failure) {
		if (!signal.aborted) error ??= failure instanceof ApiError ? failure.message : t("The response was cut off.");
	}
	return { requestId, usage, toolCalls: [...calls.values()], finishReason, error };
}

/** Joins the fragments of tool calls: the first fragment has id and name, later ones append arguments. */
function addPiece(calls: Map<number, ToolCall>, piece: ToolPiece): void {
	const index = piece.index ?? 0;
	const before = calls.get(index);
	calls.set(index, {
		id: before?.id || (piece.id ?? ""),
		name: before?.name || (piece.function?.name ?? ""),
		input: (before?.input ?? "") + (piece.function?.arguments ?? ""),
	});
}

type ToolPiece = Partial<{ index: number; id: string; function: Partial<{ name: string; arguments: string }> }>;
type Delta = Partial<{ content: string; reasoning_content: string; tool_calls: readonly ToolPiece[] }>;

interface Event {
	readonly error?: { readonly message?: string };
	readonly choices?: readonly { readonly delta?: Delta; readonly finish_reason?: string | null }[];
	readonly usage?: Partial<{ prompt_tokens: number; completion_tokens: number; cost: JsonUsd }> | null;
}

/** Yields the data of each server-sent event; comments are skipped. */
async function* events(response: Response): AsyncGenerator<string> {
	const reader = response.body
		?.pipeThrough(new TextDecoderStream())
		.pipeThrough(new EventSourceParserStream({ maxBufferSize: EVENT_CHARS_MAX }))
		.getReader();
	if (!reader) return;
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return;
		yield value.data;
	}
}
