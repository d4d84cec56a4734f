import { died } from "../call/failure.ts";
import type { AnswerStream } from "../call/stream-wire.ts";
import type { AnswerFields } from "../chat/chat-answer.ts";
import { asArray, type JsonObject } from "../wire-value.ts";
import type { CompletionChoice, CompletionChunk, CompletionReply } from "./completion-answer.ts";

/** A whole answer by way of a stream, for servers whose whole answers leave out the usage of all choices but one. */
export async function collectCompletion(
	stream: Pick<AnswerStream<CompletionChunk>, "next" | "usage">,
): Promise<CompletionReply> {
	const choices: CompletionChoice[] = [];
	const logprobs: JsonObject[][] = [];
	let outputBytes = 0;
	let outputEvents = 0;
	let about: AnswerFields | undefined;
	for (let chunks = await stream.next(); chunks !== null; chunks = await stream.next()) {
		for (const chunk of chunks) {
			outputBytes += chunk.outputBytes;
			if (chunk.outputBytes > 0) outputEvents += 1;
			about = chunk.about ?? about;
			for (const part of chunk.choices) {
				const before = choices[part.index];
				const text = (before?.text ?? "") + part.text;
				const entries = logprobs[part.index] ?? [];
				logprobs[part.index] = entries;
				if (part.logprobs !== null) entries.push(part.logprobs);
				choices[part.index] = { ...part, text, finish_reason: part.finish_reason ?? before?.finish_reason ?? null };
			}
		}
	}
	const whole = choices.flatMap((choice) => {
		const { finish_reason: finish, index } = choice;
		if (finish === null) throw died("a choice without a finish reason");
		return [{ ...choice, logprobs: joined(logprobs[index] ?? []), finish_reason: finish }];
	});
	const usage = stream.usage();
	return { choices: whole, usage, outputBytes, outputEvents, ...(about === undefined ? {} : { about }) };
}

function joined(parts: readonly JsonObject[]): JsonObject | null {
	if (parts.length === 0) return null;
	const join = (name: string) => {
		const lists = parts.map((part) => asArray(part[name]));
		return lists.includes(undefined) ? null : lists.flatMap((list) => list ?? []);
	};
	return {
		tokens: join("tokens"),
		token_logprobs: join("token_logprobs"),
		top_logprobs: join("top_logprobs"),
		text_offset: join("text_offset"),
	};
}
