/** Schemas of chat and text completions, as one answer and as stream events. */
import { type TProperties, type TSchema, Type } from "@sinclair/typebox";

export const exact = <T extends TProperties>(properties: T) => Type.Object(properties, { additionalProperties: false });
export const fieldsAs = <T extends TSchema, Names extends string>(schema: T, ...names: readonly Names[]) =>
	Object.fromEntries(names.map((name) => [name, schema])) as { [Name in Names]: T };
export const oneOf = <Values extends readonly string[]>(...values: Values) =>
	Type.Unsafe<Values[number]>(Type.Union(values.map((value) => Type.Literal(value))));
export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const Text = Type.String();
export const Count = Type.Integer({ minimum: 0 });
export const Cost = Type.Number({
	minimum: 0,
	description: "Charged amount in US dollars. GET /v1/usage/{id} has the exact amount.",
});
export const Basis = Type.Union([Type.Literal("exact"), Type.Literal("estimated")], {
	description: "`exact`: counted by the model server; `estimated`: by the gateway.",
});
export const Usd = Type.String({ pattern: "^-?\\d+\\.\\d{2,9}$", description: "US dollars as a decimal string." });
export const Seconds = Type.Integer({ description: "Unix time." });

const Usage = exact({
	...fieldsAs(Count, "prompt_tokens", "completion_tokens", "total_tokens"),
	prompt_tokens_details: exact({ cached_tokens: Count }),
	completion_tokens_details: exact({ reasoning_tokens: Count }),
	cost: Cost,
	basis: Basis,
});

const TokenLogprob = { token: Text, logprob: Type.Number(), bytes: orNull(Type.Array(Count)) };
const TokenLogprobs = orNull(Type.Array(exact({ ...TokenLogprob, top_logprobs: Type.Array(exact(TokenLogprob)) })));
const Logprobs = exact({ content: TokenLogprobs, refusal: TokenLogprobs });

const Annotation = Type.Union([
	exact({
		type: Type.Literal("url_citation"),
		url_citation: exact({
			...fieldsAs(Count, "start_index", "end_index"),
			...fieldsAs(Text, "url", "title"),
			content: Type.Optional(Text),
		}),
	}),
	exact({
		type: Type.Literal("file"),
		file: exact({
			hash: Text,
			name: Type.Optional(Text),
			content: Type.Array(exact({ type: Type.Literal("text"), text: Text })),
		}),
	}),
	exact({ type: Type.Literal("reference"), reference_ids: Type.Array(Type.Union([Count, Text])) }),
]);
const text = Type.Optional(Text);
const ExtraContent = Type.Record(Text, exact({ thought_signature: text, thought: Type.Optional(Type.Boolean()) }));
/** Members of a message or delta other than its text. Some models expect clients to send them back. */
const others = {
	annotations: Type.Optional(Type.Array(Annotation)),
	reasoning_details: Type.Optional(
		Type.Array(
			exact({
				type: Type.String({ pattern: "^reasoning\\." }),
				...fieldsAs(text, "text", "summary", "data", "signature", "id", "format"),
				index: Type.Optional(Count),
			}),
			{ description: "Send it back unchanged with its message in the next request." },
		),
	),
	thinking_blocks: Type.Optional(
		Type.Array(exact({ type: oneOf("thinking", "redacted_thinking"), thinking: text, data: text, signature: text })),
	),
	extra_content: Type.Optional(ExtraContent),
	audio: Type.Optional(exact({ id: text, data: text, expires_at: Type.Optional(Seconds), transcript: text })),
};
/** Members of an answer and of each of its stream events. */
const about = { service_tier: text };
const sources = {
	citations: Type.Optional(Type.Array(Text)),
	search_results: Type.Optional(
		Type.Array(exact({ title: text, url: Text, date: text, last_updated: text, snippet: text })),
	),
};
const FunctionCall = exact({ name: Text, arguments: Text });
const signatures = { extra_content: Type.Optional(ExtraContent), thought_signature: text };
const ToolCall = Type.Union([
	exact({ id: Text, type: Type.Literal("function"), function: FunctionCall, ...signatures }),
	exact({ id: Text, type: Type.Literal("custom"), custom: exact({ name: Text, input: Text }), ...signatures }),
]);
const Finish = oneOf("stop", "length", "tool_calls", "content_filter", "function_call");

export const ChatCompletion = exact({
	id: Text,
	object: Type.Literal("chat.completion"),
	created: Seconds,
	model: Text,
	choices: Type.Array(
		exact({
			index: Count,
			message: exact({
				role: Type.Literal("assistant"),
				content: orNull(Text),
				refusal: orNull(Text),
				reasoning_content: Type.Optional(Text),
				tool_calls: Type.Optional(Type.Array(ToolCall)),
				function_call: Type.Optional(FunctionCall),
				...others,
			}),
			logprobs: orNull(Logprobs),
			finish_reason: Finish,
		}),
		{ minItems: 1 },
	),
	usage: Usage,
	system_fingerprint: orNull(Text),
	...about,
	...sources,
});

const ToolCallDelta = exact({
	index: Count,
	id: Type.Optional(Text),
	type: Type.Optional(oneOf("function", "custom")),
	function: Type.Optional(exact({ name: Type.Optional(Text), arguments: Text })),
	custom: Type.Optional(exact({ name: Type.Optional(Text), input: Text })),
	...signatures,
});
export const ChatCompletionChunk = exact({
	id: Text,
	object: Type.Literal("chat.completion.chunk"),
	created: Seconds,
	model: Text,
	choices: Type.Array(
		exact({
			index: Count,
			delta: exact({
				role: Type.Optional(Type.Literal("assistant")),
				content: Type.Optional(orNull(Text)),
				refusal: Type.Optional(Text),
				reasoning_content: Type.Optional(Text),
				tool_calls: Type.Optional(Type.Array(ToolCallDelta)),
				function_call: Type.Optional(exact({ name: Type.Optional(Text), arguments: Text })),
				...others,
			}),
			logprobs: Type.Optional(orNull(Logprobs)),
			finish_reason: orNull(Finish),
		}),
	),
	usage: Type.Optional(orNull(Usage)),
	system_fingerprint: text,
	...about,
	...sources,
});

const CompletionLogprobs = exact({
	tokens: Type.Array(Text),
	token_logprobs: orNull(Type.Array(orNull(Type.Number()))),
	top_logprobs: orNull(Type.Array(orNull(Type.Record(Text, Type.Number())))),
	text_offset: orNull(Type.Array(Count)),
});
const CompletionFinish = oneOf("stop", "length", "content_filter");
const completionChoice = (finish: TProperties[string]) =>
	exact({ text: Text, index: Count, logprobs: orNull(CompletionLogprobs), finish_reason: finish });
const completionHead = { id: Text, object: Type.Literal("text_completion"), created: Seconds, model: Text };
export const Completion = exact({
	...completionHead,
	choices: Type.Array(completionChoice(CompletionFinish), { minItems: 1 }),
	usage: Usage,
	system_fingerprint: orNull(Text),
	...about,
});
export const CompletionChunk = exact({
	...completionHead,
	choices: Type.Array(completionChoice(orNull(CompletionFinish))),
	usage: Type.Optional(orNull(Usage)),
	system_fingerprint: text,
	...about,
});
