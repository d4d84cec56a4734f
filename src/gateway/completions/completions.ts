import { type Static, Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { addTextMeasure, measureText, type PromptMeasure } from "../../admission/prompt-bound.ts";
import { Fault } from "../../base/fault.ts";
import type { Model } from "../../catalog/model.ts";
import { OWN_FIELDS } from "../../catalog/request-fields.ts";
import type { CompletionChunk, CompletionReply } from "../../upstream/completions.ts";
import { completionStream, unstreamedCompletion } from "../../upstream/completions.ts";
import { DIALECTS } from "../../upstream/dialects.ts";
import { Prompt } from "../../upstream/prompt.ts";
import { generatedText } from "../generated-text.ts";
import {
	assertBody,
	assertStreamOptions,
	GENERATION_FIELDS,
	limitsOutput,
	nullish,
	removeEmpty,
	requestBody,
	supportedFields,
	unsupportedLimits,
} from "../request-fields.ts";

const PROMPTS_MAX = 128;
const CHOICES_MAX = 1_024;
const OUTPUT_TOKENS_DEFAULT = 16;

export const TokenIds = Type.Array(Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 }), { minItems: 1 });

export const CompletionRequestBody = requestBody({
	prompt: Type.Union([
		Type.String(),
		Type.Array(Type.String(), { minItems: 1, maxItems: PROMPTS_MAX }),
		TokenIds,
		Type.Array(TokenIds, { minItems: 1, maxItems: PROMPTS_MAX }),
	]),
	best_of: nullish(Type.Integer({ minimum: 1, maximum: 128 })),
	echo: nullish(Type.Boolean()),
	suffix: nullish(Type.String()),
	logprobs: nullish(Type.Integer({ minimum: 0, maximum: 20 })),
	...GENERATION_FIELDS,
});
type Body = Static<typeof CompletionRequestBody>;

const check = TypeCompiler.Compile(CompletionRequestBody);

type CompletionPrompt = string | readonly number[];

export type CompletionInput = ReturnType<typeof readCompletionRequest>;

export function readCompletionRequest(body: Record<string, unknown>, model: Model) {
	removeEmpty(body);
	assertBody(check, body);
	assertStreamOptions(body);
	const prompts = promptsOf(body.prompt);
	checkForms(prompts, model);
	const n = model.parameters.has("n") ? (body.n ?? 1) : 1;
	if (prompts.length * n > CHOICES_MAX) {
		throw new Fault("invalid_request", `The number of prompts times \`n\` must not exceed ${CHOICES_MAX}.`, {
			param: "n",
		});
	}
	// `best_of` above `n` cannot be charged: usage records do not count the tokens of discarded choices.
	const unbilled = typeof body.best_of === "number" && body.best_of > n ? ["best_of"] : [];
	const unsupported = [...unsupportedLimits(body, model), ...unbilled];
	const { fields, ignored } = supportedFields(body, model, OWN_FIELDS.completions, unsupported);
	const suffix = typeof fields.suffix === "string" ? fields.suffix : "";
	return {
		prompt: new Prompt(prompts.length === 1 ? prompts[0] : prompts),
		fields,
		shape: { prompts: prompts.length, n },
		choices: prompts.length * n,
		stream: body.stream === true,
		includeUsage: body.stream_options?.include_usage === true,
		maxOutputTokens: Math.min(maxOutputTokensOf(body, model), model.maxOutputTokens),
		measure: measureOf(prompts, suffix, model),
		ignored,
	};
}

function maxOutputTokensOf(body: Body, model: Model): number {
	const tokens = body.max_tokens ?? body.max_completion_tokens;
	if (tokens === undefined || tokens === null) return OUTPUT_TOKENS_DEFAULT;
	return limitsOutput(model) ? tokens : model.maxOutputTokens;
}

function promptsOf(prompt: Body["prompt"]): readonly CompletionPrompt[] {
	if (typeof prompt === "string") return [prompt];
	return typeof prompt[0] === "number" ? [prompt as number[]] : (prompt as CompletionPrompt[]);
}

/** Any replica may get the request, so all replicas must support the form of its prompts (several, or token ids). */
function checkForms(prompts: readonly CompletionPrompt[], model: Model): void {
	const forms = model.upstreams.map(({ dialect }) => DIALECTS[dialect].prompts);
	if (prompts.length > 1 && forms.some(({ many }) => !many)) {
		throw new Fault("invalid_request", "This model takes one prompt per request. Send one request for each prompt.", {
			param: "prompt",
		});
	}
	if (prompts.some((prompt) => typeof prompt !== "string") && forms.some(({ tokens }) => !tokens))
		throw new Fault("invalid_request", "This model does not accept token IDs. Send `prompt` as text.", {
			param: "prompt",
		});
}

function measureOf(prompts: readonly CompletionPrompt[], suffix: string, model: Model): PromptMeasure {
	const text = measureText(suffix, model);
	const all = { textBytes: text.textBytes * prompts.length, addedBytes: text.addedBytes * prompts.length };
	let tokens = 0;
	for (const prompt of prompts) {
		if (typeof prompt === "string") addTextMeasure(all, prompt, model);
		else tokens += prompt.length;
	}
	return { ...all, tokens, messages: prompts.length, images: 0, hasTools: false, prompts: prompts.length };
}

export const completions = generatedText<CompletionInput, CompletionReply, CompletionChunk>({
	name: "completions",
	promptField: "prompt",
	schema: CompletionRequestBody,
	readsRaw: false,
	idPrefix: "cmpl",
	object: { whole: "text_completion", chunk: "text_completion" },
	read: ({ value }, model) => readCompletionRequest(value, model),
	whole: unstreamedCompletion,
	stream: completionStream,
});
