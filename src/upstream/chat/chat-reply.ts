import type { Dialect } from "../dialect.ts";
import { type ChatChunk, type ChatReply, UpstreamFailure } from "../reply.ts";
import { readUsage } from "../usage.ts";
import { asArray, asObject, type JsonObject, parseJson } from "../wire-value.ts";
import { CHOICES_MAX, newChoiceProgress, rebuildChoice } from "./chat-choice.ts";
import { isError } from "./chat-reader.ts";

/** Rebuilds an unstreamed chat answer. Throws UpstreamFailure if it is an error or no chat answer at all. */
export function readChatReply(bodyText: string, dialect: Dialect): ChatReply {
	const body = asObject(parseJson(bodyText));
	if (body === undefined) throw nonsense("an answer that is no JSON object");
	if (isError(body)) throw dialect.failureOfError(body);
	const rawChoices = asArray(body.choices);
	if (rawChoices === undefined || rawChoices.length === 0) throw nonsense("an answer without choices");
	if (rawChoices.length > CHOICES_MAX) throw nonsense("an answer with too many choices");
	let outputBytes = 0;
	const choices = rawChoices.map((raw) => {
		const progress = newChoiceProgress();
		const choice = rebuildChoice(raw, progress);
		outputBytes += progress.outputBytes;
		return choice;
	});
	const partial = choices.length > 1 && !dialect.unaryUsageCoversChoices;
	return { choices, usage: partial ? undefined : readUsage(body.usage), outputBytes };
}

/** The same answer as one streamed event, for servers that answer a streamed request with a whole body. */
export function chunkOfReply(reply: ChatReply): ChatChunk {
	const choices = reply.choices.map(({ index, message, logprobs, finish_reason }) => ({
		index,
		delta: deltaOfMessage(message),
		...(logprobs === null ? {} : { logprobs }),
		finish_reason,
	}));
	return { choices, outputBytes: reply.outputBytes };
}

function deltaOfMessage(message: JsonObject): JsonObject {
	const { refusal, tool_calls: calls, ...delta } = message;
	return {
		...delta,
		...(refusal === null ? {} : { refusal }),
		...(Array.isArray(calls) ? { tool_calls: calls.map((call, index) => ({ index, ...call })) } : {}),
	};
}

function nonsense(detail: string): UpstreamFailure {
	return new UpstreamFailure("unreachable", { private: detail });
}
