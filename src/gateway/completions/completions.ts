import type { CompletionChunk, CompletionReply } from "../../upstream/completions/completion-answer.ts";
import { completionStream, completionWhole } from "../../upstream/completions/completion-call.ts";
import { generatedText } from "../generated-text.ts";
import { type CompletionInput, readCompletionRequest } from "./completions-request.ts";

/** POST /v1/completions. */
export const completions = generatedText<CompletionInput, CompletionReply, CompletionChunk>({
	name: "completions",
	promptField: "prompt",
	readsRaw: false,
	idPrefix: "cmpl",
	object: { whole: "text_completion", chunk: "text_completion" },
	read: ({ value }, model) => readCompletionRequest(value, model),
	affinityOf,
	whole: completionWhole,
	stream: completionStream,
});

const PREFIX_CHARS = 1_024;

/** Requests that begin alike share a replica's prefix cache. */
function affinityOf({ prompt }: CompletionInput): string {
	const { value } = prompt;
	const start = typeof value === "string" ? value : JSON.stringify(Array.isArray(value) ? value.slice(0, 256) : "");
	return Bun.hash(start.slice(0, PREFIX_CHARS)).toString(36);
}
