import { useEffect, useRef, useState } from "react";
import type { ModelView } from "../../api.ts";
import { streamChat } from "../../chat-stream.ts";
import { ApiError } from "../../http.ts";
import { useAction } from "../../resource.ts";
import { t } from "../../texts.tsx";
import { type AnswerStats, type AnswerTurn, type ChatSetup, chatBody, NO_ANSWER, type Turn } from "./conversation.ts";

export type Thread = ReturnType<typeof useThread>;

/** State of a conversation with a model. `address` is the URL of the chat endpoint; undefined without a key. */
export function useThread(
	address: string | undefined,
	model: ModelView | undefined,
	setup: ChatSetup,
	start: readonly Turn[],
) {
	const [turns, setTurns] = useState(start);
	const [refused, setRefused] = useState<readonly Turn[]>();
	const abort = useRef<AbortController>(undefined);
	// Aborts the stream when the page closes: otherwise the rest of the answer, which is not shown, would be charged.
	useEffect(() => () => abort.current?.abort(), []);

	const ask = useAction(async (added: readonly Turn[]) => {
		if (address === undefined || model === undefined) return;
		const asked = [...turns, ...added];
		let answer = NO_ANSWER;
		const put = (changes: Partial<AnswerTurn>) => {
			answer = { ...answer, ...changes };
			setTurns([...asked, answer]);
		};
		setRefused(undefined);
		put({});
		abort.current = new AbortController();
		try {
			await receive(address, chatBody(model, asked, setup), abort.current.signal, put);
		} catch (error) {
			setTurns(turns);
			setRefused(added);
			if (!abort.current.signal.aborted) throw error;
			throw new ApiError(t("Stopped before the response started."), { status: 0, code: "stopped" });
		}
	});
	return {
		turns,
		/** A message that the service refused; its turns join the conversation only when it is sent again. */
		refused: refused && ask.error ? { turns: refused, error: ask.error } : undefined,
		busy: ask.busy,
		/** Adds turns to the conversation and requests an answer. */
		ask: (added: readonly Turn[]) => void ask.run(added),
		stop: () => abort.current?.abort(),
		set(next: readonly Turn[]) {
			setTurns(next);
			setRefused(undefined);
			ask.clear();
		},
	};
}

async function receive(
	address: string,
	body: Readonly<Record<string, unknown>> & { readonly model: string },
	signal: AbortSignal,
	put: (changes: Partial<AnswerTurn>) => void,
): Promise<void> {
	const startMs = performance.now();
	let firstTokenMs: number | null = null;
	let content = "";
	let thought = "";
	const end = await streamChat(address, body, signal, (text, kind) => {
		firstTokenMs ??= performance.now() - startMs;
		if (kind === "answer") content += text;
		else thought += text;
		put({ content, thought });
	});
	const facts: AnswerStats = {
		model: body.model,
		requestId: end.requestId,
		promptTokens: end.usage?.promptTokens ?? null,
		completionTokens: end.usage?.completionTokens ?? null,
		costNanoUsd: end.usage?.costNanoUsd ?? null,
		firstTokenMs,
		totalMs: performance.now() - startMs,
		stopped: signal.aborted,
	};
	// Drops the tool calls of a cancelled answer, whose arguments may be incomplete.
	const toolCalls = end.finishReason === null ? [] : end.toolCalls;
	put({ toolCalls, facts, ...(end.error === undefined ? {} : { error: end.error }) });
}
