import type { Gathering, StreamWire } from "./call/stream-wire.ts";
import type { AnswerFields, TextChunk, TextReply } from "./chat/chat-answer.ts";
import { asObject, type JsonObject } from "./wire-value.ts";

/** Joins the chunks of chats and completions. `choiceOf` converts a joined choice to one of an unstreamed answer. */
export function gatherText<Part extends { readonly index: number }, Choice>(
	wire: StreamWire<TextChunk<Part>>,
	choiceOf: (merged: Part) => Choice,
): Gathering<TextReply<Choice>, TextChunk<Part>> {
	const merged: (Part | undefined)[] = [];
	let outputBytes = 0;
	let about: AnswerFields | undefined;
	let sources: AnswerFields | undefined;
	return {
		wire,
		add(chunk) {
			// The casts are safe, because a choice is JSON and merging keeps the type of each member.
			for (const choice of chunk.choices)
				merged[choice.index] = merge({ ...merged[choice.index] }, choice as JsonObject) as Part;
			outputBytes += chunk.outputBytes;
			about = chunk.about ?? about;
			sources = chunk.sources ?? sources;
			return chunk.choicesText === undefined ? JSON.stringify(chunk.choices).length : chunk.outputBytes;
		},
		answer: (usage) => ({
			choices: merged.flatMap((choice) => (choice === undefined ? [] : [choiceOf(choice)])),
			usage,
			outputBytes,
			...(about === undefined ? {} : { about }),
			...(sources === undefined ? {} : { sources }),
		}),
	};
}

/** Members whose fragments are concatenated to one text. */
const TEXTS: ReadonlySet<string> = new Set(
	"content text refusal reasoning_content name arguments input data transcript".split(" "),
);

/** Adds a fragment: extends texts and lists, merges tool calls by index and objects by member. */
function merge(into: Record<string, unknown>, piece: JsonObject): Record<string, unknown> {
	for (const name in piece) into[name] = joined(name, into[name], piece[name]);
	return into;
}

function joined(name: string, before: unknown, piece: unknown): unknown {
	if (piece === null || piece === undefined) return before ?? piece;
	if (typeof before === "string" && typeof piece === "string") return TEXTS.has(name) ? before + piece : piece;
	if (Array.isArray(before) && Array.isArray(piece)) {
		for (const item of piece) {
			if (name === "tool_calls" && before[item.index] !== undefined) merge(before[item.index], item);
			else before.push(item);
		}
		return before;
	}
	const [object, members] = [asObject(before), asObject(piece)];
	return object === undefined || members === undefined ? piece : merge({ ...object }, members);
}
