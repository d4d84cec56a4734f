/** Generated text as schemas: chats and completions, whole and as events. */
import type { TProperties } from "@sinclair/typebox";
import { Type } from "@sinclair/typebox";
import { Cost, Count, exact, oneOf, orNull, Seconds } from "./openapi-words.ts";

const Usage = exact({
	prompt_tokens: Count,
	completion_tokens: Count,
	total_tokens: Count,
	prompt_tokens_details: exact({ cached_tokens: Count }),
	completion_tokens_details: exact({ reasoning_tokens: Count }),
	cost: Cost,
});

const TokenLogprob = {
	token: Type.String(),
	logprob: Type.Number(),
	bytes: orNull(Type.Array(Count)),
};
const TokenLogprobs = orNull(Type.Array(exact({ ...TokenLogprob, top_logprobs: Type.Array(exact(TokenLogprob)) })));
const Logprobs = exact({ content: TokenLogprobs, refusal: TokenLogprobs });

const FunctionCall = exact({ name: Type.String(), arguments: Type.String() });
const ToolCall = Type.Union([
	exact({ id: Type.String(), type: Type.Literal("function"), function: FunctionCall }),
	exact({
		id: Type.String(),
		type: Type.Literal("custom"),
		custom: exact({ name: Type.String(), input: Type.String() }),
	}),
]);
const Annotation = exact({
	type: Type.Literal("url_citation"),
	url_citation: exact({ start_index: Count, end_index: Count, url: Type.String(), title: Type.String() }),
});
const Finish = oneOf("stop", "length", "tool_calls", "content_filter", "function_call");

export const ChatCompletion = exact({
	id: Type.String(),
	object: Type.Literal("chat.completion"),
	created: Seconds,
	model: Type.String(),
	choices: Type.Array(
		exact({
			index: Count,
			message: exact({
				role: Type.Literal("assistant"),
				content: orNull(Type.String()),
				refusal: orNull(Type.String()),
				reasoning_content: Type.Optional(Type.String()),
				tool_calls: Type.Optional(Type.Array(ToolCall)),
				function_call: Type.Optional(FunctionCall),
				annotations: Type.Optional(Type.Array(Annotation)),
			}),
			logprobs: orNull(Logprobs),
			finish_reason: Finish,
		}),
		{ minItems: 1 },
	),
	usage: Usage,
	system_fingerprint: Type.Null(),
});

const ToolCallDelta = exact({
	index: Count,
	id: Type.Optional(Type.String()),
	type: Type.Optional(oneOf("function", "custom")),
	function: Type.Optional(exact({ name: Type.Optional(Type.String()), arguments: Type.String() })),
	custom: Type.Optional(exact({ name: Type.Optional(Type.String()), input: Type.String() })),
});
export const ChatCompletionChunk = exact({
	id: Type.String(),
	object: Type.Literal("chat.completion.chunk"),
	created: Seconds,
	model: Type.String(),
	choices: Type.Array(
		exact({
			index: Count,
			delta: exact({
				role: Type.Optional(Type.Literal("assistant")),
				content: Type.Optional(orNull(Type.String())),
				refusal: Type.Optional(Type.String()),
				reasoning_content: Type.Optional(Type.String()),
				tool_calls: Type.Optional(Type.Array(ToolCallDelta)),
				function_call: Type.Optional(exact({ name: Type.Optional(Type.String()), arguments: Type.String() })),
				annotations: Type.Optional(Type.Array(Annotation)),
			}),
			logprobs: Type.Optional(orNull(Logprobs)),
			finish_reason: orNull(Finish),
		}),
	),
	usage: Type.Optional(orNull(Usage)),
});

const CompletionLogprobs = exact({
	tokens: Type.Array(Type.String()),
	token_logprobs: orNull(Type.Array(orNull(Type.Number()))),
	top_logprobs: orNull(Type.Array(orNull(Type.Record(Type.String(), Type.Number())))),
	text_offset: orNull(Type.Array(Count)),
});
const CompletionFinish = oneOf("stop", "length", "content_filter");
const completionChoice = (finish: TProperties[string]) =>
	exact({ text: Type.String(), index: Count, logprobs: orNull(CompletionLogprobs), finish_reason: finish });
const completionHead = {
	id: Type.String(),
	object: Type.Literal("text_completion"),
	created: Seconds,
	model: Type.String(),
};
export const Completion = exact({
	...completionHead,
	choices: Type.Array(completionChoice(CompletionFinish), { minItems: 1 }),
	usage: Usage,
	system_fingerprint: Type.Null(),
});
export const CompletionChunk = exact({
	...completionHead,
	choices: Type.Array(completionChoice(orNull(CompletionFinish))),
	usage: Type.Optional(orNull(Usage)),
});
