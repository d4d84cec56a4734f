/** Fields of chat answers that clients get. `test/wire/withheld-fields.ts` gives reasons for withheld fields. */

import { filledText, type JsonObject } from "../wire-value.ts";
import {
	annotations,
	audio,
	citations,
	extraContent,
	fingerprint,
	images,
	reasoningDetails,
	searchResults,
	serviceTier,
	thinkingBlocks,
} from "./answer-values.ts";
import type { AnswerFields } from "./chat-answer.ts";

/** Copies a value member by member; undefined if the value is dropped. */
type Read = (value: unknown) => unknown;

/** Fields that other functions copy, so they have no reader here. */
const own = (names: string): Record<string, null> => Object.fromEntries(names.split(" ").map((name) => [name, null]));

export const PASSED: Readonly<Record<"answer" | "choice" | "message" | "toolCall", Record<string, Read | null>>> = {
	answer: {
		...own("choices usage"),
		service_tier: serviceTier,
		// Shows customers why the same seed gave another answer. Values with versions, file names or hosts are dropped.
		system_fingerprint: fingerprint,
		citations,
		search_results: searchResults,
	},
	choice: own("index message delta logprobs finish_reason"),
	message: {
		// `reasoning` is renamed to `reasoning_content`, which most clients read.
		...own("role content refusal tool_calls function_call reasoning_content reasoning"),
		// Clients send these three fields back. Some reasoning models refuse tool calls without their signatures.
		reasoning_details: reasoningDetails,
		thinking_blocks: thinkingBlocks,
		extra_content: extraContent,
		annotations,
		audio,
		images,
	},
	toolCall: { ...own("index id type function custom"), extra_content: extraContent, thought_signature: filledText },
};

function readersOf(
	fields: Record<string, Read | null>,
	names = Object.keys(fields),
): readonly (readonly [string, Read])[] {
	return names.flatMap((name) => (fields[name] ? [[name, fields[name]] as const] : []));
}

/** Lists of sources, which are sent once, at the end of a stream. */
const SOURCES = ["citations", "search_results"];
const ABOUT_READERS = readersOf(PASSED.answer, ["service_tier", "system_fingerprint"]);
const SOURCE_READERS = readersOf(PASSED.answer, SOURCES);
export const MESSAGE_READERS = readersOf(PASSED.message);
export const TOOL_CALL_READERS = readersOf(PASSED.toolCall);

/** Fields of a stream's events so far, other than the choices. */
export interface OtherFields {
	/** Undefined if there were none. The same object until a field changes, so that its JSON can be reused. */
	about: AnswerFields | undefined;
	sources: AnswerFields | undefined;
}

export function newOtherFields(): OtherFields {
	return { about: undefined, sources: undefined };
}

/** Reads the fields of an event or of a complete answer. Returns true if `sources` changed. */
export function updateOtherFields(soFar: OtherFields, event: JsonObject): boolean {
	for (const [name, read] of ABOUT_READERS) {
		const raw = event[name];
		if (raw === undefined || raw === null || raw === soFar.about?.[name]) continue;
		const value = read(raw);
		if (value !== undefined) soFar.about = { ...soFar.about, [name]: value };
	}
	let changed = false;
	for (const [name, read] of SOURCE_READERS) {
		const value = event[name] === undefined ? undefined : read(event[name]);
		if (value === undefined) continue;
		soFar.sources = { ...soFar.sources, [name]: value };
		changed = true;
	}
	return changed;
}

const NOTHING_SAID = {};

export function readOtherFields(body: JsonObject): { about?: AnswerFields; sources?: AnswerFields } {
	const soFar = newOtherFields();
	updateOtherFields(soFar, body);
	const { about, sources } = soFar;
	if (about === undefined && sources === undefined) return NOTHING_SAID;
	return { ...(about === undefined ? {} : { about }), ...(sources === undefined ? {} : { sources }) };
}
