import { died } from "../call/failure.ts";
import type { AnswerStream } from "../call/stream-wire.ts";
import { asArray, asObject, asObjects, asText, type JsonObject } from "../wire-value.ts";
import { MESSAGE_READERS, TOOL_CALL_READERS } from "./answer-fields.ts";
import type { AnswerFields, ChatChunk, ChatChunkChoice, ChatReply, FinishReason } from "./chat-answer.ts";

interface Gathered {
	text: Record<"content" | "refusal" | "reasoning_content", string>;
	/** By index; holes where a server skipped an index. */
	calls: { id: string; type: string; part: "function" | "custom"; name: string; text: string; others: JsonObject }[];
	functionCall: { name: string; arguments: string } | undefined;
	/** By name: see `answer-fields.ts`. */
	others: Record<string, unknown>;
	logprobs: Record<"content" | "refusal", unknown[]>;
	finish: FinishReason | undefined;
}

/** Collects a stream into a whole answer. */
export async function collectChat(stream: Pick<AnswerStream<ChatChunk>, "next" | "usage">): Promise<ChatReply> {
	const collector = createChatCollector();
	for (let chunks = await stream.next(); chunks !== null; chunks = await stream.next()) {
		for (const chunk of chunks) collector.add(chunk);
	}
	return { ...collector.reply(), usage: stream.usage() };
}

/** Joins the chunks of a stream into a whole answer. */
export function createChatCollector() {
	const choices: (Gathered | undefined)[] = [];
	let outputBytes = 0;
	let outputEvents = 0;
	let about: AnswerFields | undefined;
	let sources: AnswerFields | undefined;

	function gather(choice: ChatChunkChoice): void {
		let into = choices[choice.index];
		if (into === undefined) {
			into = {
				text: { content: "", refusal: "", reasoning_content: "" },
				calls: [],
				functionCall: undefined,
				others: {},
				logprobs: { content: [], refusal: [] },
				finish: undefined,
			};
			choices[choice.index] = into;
		}
		const { delta, logprobs, finish_reason } = choice;
		for (const field of ["content", "refusal", "reasoning_content"] as const) {
			if (typeof delta[field] === "string") into.text[field] += delta[field];
		}
		for (const call of asArray(delta.tool_calls) ?? []) gatherCall(into, call as JsonObject);
		const legacy = asObject(delta.function_call);
		if (legacy !== undefined) {
			into.functionCall ??= { name: "", arguments: "" };
			into.functionCall.name += legacy.name ?? "";
			into.functionCall.arguments += legacy.arguments ?? "";
		}
		for (const [name] of MESSAGE_READERS)
			if (delta[name] !== undefined) into.others[name] = merged(into.others[name], delta[name]);
		for (const field of ["content", "refusal"] as const)
			into.logprobs[field].push(...(asArray(asObject(logprobs)?.[field]) ?? []));
		if (finish_reason !== null) into.finish = finish_reason;
	}

	return {
		add(chunk: ChatChunk) {
			outputBytes += chunk.outputBytes;
			if (chunk.outputBytes > 0) outputEvents += 1;
			about = chunk.about ?? about;
			sources = chunk.sources ?? sources;
			for (const choice of chunk.choices) gather(choice);
		},
		/** Everything except usage. Throws UpstreamFailure if a choice has no finish. */
		reply: (): Omit<ChatReply, "usage"> => ({
			choices: choices.flatMap((gathered, index) => (gathered === undefined ? [] : [whole(gathered, index)])),
			outputBytes,
			outputEvents,
			...(about === undefined ? {} : { about }),
			...(sources === undefined ? {} : { sources }),
		}),
	};
}

function gatherCall(into: Gathered, call: JsonObject): void {
	const index = call.index as number;
	const part = call.custom === undefined ? "function" : "custom";
	const body = call[part] as JsonObject;
	const known = into.calls[index] ?? {
		id: String(call.id),
		type: String(call.type),
		part,
		name: "",
		text: "",
		others: {},
	};
	for (const [name] of TOOL_CALL_READERS)
		if (call[name] !== undefined) known.others = { ...known.others, [name]: call[name] };
	known.name += body.name ?? "";
	known.text += (part === "function" ? body.arguments : body.input) ?? "";
	into.calls[index] = known;
}

function whole(gathered: Gathered, index: number): ChatReply["choices"][number] {
	const { text, calls, functionCall, others, logprobs, finish } = gathered;
	if (finish === undefined) throw died("a choice without a finish reason");
	// `flatMap` skips the holes.
	const toolCalls = calls.flatMap(({ id, type, part, name, text: args, others: more }): JsonObject[] => [
		{ id, type, [part]: part === "function" ? { name, arguments: args } : { name, input: args }, ...more },
	]);
	const calling = toolCalls.length > 0 || functionCall !== undefined;
	return {
		index,
		message: {
			role: "assistant",
			content: text.content === "" && calling ? null : text.content,
			refusal: text.refusal === "" ? null : text.refusal,
			...(text.reasoning_content === "" ? {} : { reasoning_content: text.reasoning_content }),
			...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
			...(functionCall === undefined ? {} : { function_call: functionCall }),
			...others,
		},
		logprobs: logprobsOf(logprobs),
		finish_reason: finish,
	};
}

function logprobsOf({ content, refusal }: Gathered["logprobs"]): JsonObject | null {
	const listOrNull = (list: unknown[]) => (list.length === 0 ? null : list);
	return content.length + refusal.length === 0 ? null : { content: listOrNull(content), refusal: listOrNull(refusal) };
}

/** Members that arrive in pieces; of all others the last value counts. */
const PIECES: ReadonlySet<string> = new Set(["text", "summary", "data", "thinking", "transcript"]);

/** Joins the value collected so far with the next value of the same name. */
function merged(known: unknown, next: unknown): unknown {
	if (Array.isArray(next)) return asObjects(next).reduce(appended, asObjects(known));
	return joined((known ?? {}) as JsonObject, next as JsonObject);
}

/** A piece of the last item extends it; anything else is the next item. */
function appended(items: JsonObject[], item: JsonObject): JsonObject[] {
	const last = items.at(-1);
	const goesOn =
		last !== undefined &&
		last.type === item.type &&
		last.index === item.index &&
		(item.index !== undefined || item.type === "thinking") &&
		last.signature === undefined;
	return goesOn ? [...items.slice(0, -1), joined(last, item)] : [...items, item];
}

function joined(known: JsonObject, next: JsonObject): JsonObject {
	const both: Record<string, unknown> = { ...known };
	for (const [name, value] of Object.entries(next)) {
		const before = asText(known[name]);
		both[name] = PIECES.has(name) && before !== undefined ? `${before}${value}` : value;
	}
	return both;
}
