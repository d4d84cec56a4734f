import type { Model } from "../../catalog/model.ts";
import type { CompletionChunk, CompletionReply } from "../../upstream/completions/completion-answer.ts";
import type { CompletionCall } from "../../upstream/completions/completion-call.ts";
import { completionStream, completionWhole } from "../../upstream/completions/completion-call.ts";
import { generatedText } from "../generated-text.ts";
import { callContext } from "../serve/context.ts";
import type { CompletionInput } from "./completions-request.ts";
import { readCompletionRequest } from "./completions-request.ts";

/** POST /v1/completions. */
export const completions = generatedText<CompletionInput, CompletionCall, CompletionReply, CompletionChunk>({
	name: "completions",
	promptField: "prompt",
	idPrefix: "cmpl",
	object: { whole: "text_completion", chunk: "text_completion" },
	read: ({ value }, model) => readCompletionRequest(value, model),
	callOf(exchange, signal) {
		const { model, input } = exchange;
		const { fields, prompt, shape, outputTokensMax } = input;
		const context = callContext(exchange, signal, affinityOf(model, input));
		return { ...context, fields, prompt, shape, outputLimit: outputTokensMax };
	},
	whole: completionWhole,
	stream: completionStream,
});

const PREFIX_CHARS = 1_024;

/** Requests that begin alike share a replica's prefix cache. */
function affinityOf(model: Model, { prompt }: CompletionInput): string | undefined {
	if (model.upstreams.length < 2) return undefined;
	const { value } = prompt;
	const start = typeof value === "string" ? value : JSON.stringify(Array.isArray(value) ? value.slice(0, 256) : "");
	return Bun.hash(start.slice(0, PREFIX_CHARS)).toString(36);
}
