import { addExactly } from "../base/exact-json.ts";
import { fieldsNotCopied, supportsField } from "../catalog/request-fields.ts";
import type { TextReply } from "./chat/chat-answer.ts";
import type { Prompt } from "./prompt.ts";
import type { Replica } from "./replicas/replica.ts";
import { usageOfChoices } from "./usage.ts";

/** The parts of a chat or text completion that the gateway sets. */
export interface GenerationRequest {
	readonly kind: "chat" | "completions";
	readonly fields: Readonly<Record<string, unknown>>;
	readonly prompt: Prompt;
	/** Output tokens per choice, as reserved; undefined if prompt and limit together exceed the context. */
	readonly maxOutputTokens: number | undefined;
	readonly n: number;
	readonly parameters: ReadonlySet<string>;
	/** Separates the account's prompts from other accounts' in the server's cache; undefined: the cache is shared. */
	readonly cacheSalt?: string | undefined;
}

/**
 * JSON text of the request for a replica. The output limit is only in the field that its server reads. A prompt that is
 * already text is inserted.
 */
export function generationBody(replica: Replica, request: GenerationRequest, stream: boolean): string {
	const { dialect } = replica;
	const { kind, fields, n } = request;
	const omitted = fieldsNotCopied(dialect.name, kind);
	const body: Record<string, unknown> = { model: replica.spec().model };
	for (const name in fields) {
		const value = fields[name];
		if (value !== null && value !== undefined && !omitted.has(name)) body[name] = dialect.shaped(name, value);
	}
	if (n > 1 && supportsField(dialect.name, "n")) body.n = n;
	// In text completions the limit has this name in all dialects.
	body[kind === "chat" ? dialect.limitField(request.parameters) : "max_tokens"] = request.maxOutputTokens;
	body.stream = stream;
	if (request.cacheSalt !== undefined && dialect.takesCacheSalt) body.cache_salt = request.cacheSalt;
	if (stream) body.stream_options = dialect.streamOptions;
	return request.prompt.writtenInto(body, kind === "chat" ? "messages" : "prompt");
}

/** Fields of the request for one choice. Each choice gets another seed, because equal seeds give equal choices. */
export function fieldsForChoice(fields: GenerationRequest["fields"], choice: number): GenerationRequest["fields"] {
	const seed = addExactly(fields.seed, choice);
	return seed === undefined ? fields : { ...fields, seed };
}

/** Joins replies with one choice each (`n` per prompt) to the reply of one request. */
export function joinReplies<Choice extends { readonly index: number }>(
	replies: readonly TextReply<Choice>[],
	n: number,
): TextReply<Choice> {
	const usages = replies.map(({ usage }) => usage);
	return {
		...replies.at(-1),
		choices: replies.flatMap(({ choices }, index) => choices.map((choice) => ({ ...choice, index }))),
		// If one choice lacks usage, undefined: the sum would be too low, so the gateway estimates all output instead.
		usage: usages.includes(undefined) ? undefined : usageOfChoices(usages, n),
		outputBytes: replies.reduce((sum, { outputBytes }) => sum + outputBytes, 0),
	};
}
