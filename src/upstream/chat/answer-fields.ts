/**
 * Who a field of a chat answer is for. Answers are rebuilt from the first list only, so a field on neither list is
 * dropped too. The second list explains why a field that real servers send is dropped.
 */
import {
	annotations,
	audio,
	citations,
	extraContent,
	fingerprint,
	opaqueText,
	reasoningDetails,
	searchResults,
	serviceTier,
	thinkingBlocks,
} from "./answer-values.ts";

/**
 * Why the field is passed on, and how its value is rebuilt; undefined for a value to drop. Fields without `read` have
 * code of their own.
 */
interface Passed {
	readonly why: string;
	read?(value: unknown): unknown;
}

type Fields<Value> = Readonly<Record<"answer" | "choice" | "message" | "toolCall", Readonly<Record<string, Value>>>>;

const FORMAT = "part of the interface's format";
const NEXT_TURN = "the next turn needs it: a reasoning model takes its tool calls back only as it signed them";

/** Fields about the answer. */
export const PASSED: Fields<Passed> = {
	answer: {
		choices: { why: FORMAT },
		usage: { why: "the basis of the charge; written by this service" },
		service_tier: { why: "which of the tiers that the customer may ask for it was served in", read: serviceTier },
		system_fingerprint: {
			why: "tells the customer that the same seed may answer otherwise; in the interface's form only, since others put versions, model files or machines there",
			read: fingerprint,
		},
		citations: { why: "the sources that the text's marks count", read: citations },
		search_results: { why: "the sources with their titles", read: searchResults },
	},
	choice: {
		index: { why: FORMAT },
		message: { why: FORMAT },
		delta: { why: FORMAT },
		logprobs: { why: FORMAT },
		finish_reason: { why: FORMAT },
	},
	message: {
		role: { why: FORMAT },
		content: { why: FORMAT },
		refusal: { why: FORMAT },
		tool_calls: { why: FORMAT },
		function_call: { why: FORMAT },
		reasoning_content: { why: "the reasoning, under the name that most clients read" },
		reasoning: { why: "the same under its other name; leaves as `reasoning_content`" },
		reasoning_details: { why: NEXT_TURN, read: reasoningDetails },
		thinking_blocks: { why: NEXT_TURN, read: thinkingBlocks },
		extra_content: { why: NEXT_TURN, read: extraContent },
		annotations: { why: "sources of what the text says, and files as they were read", read: annotations },
		audio: { why: "the answer itself, spoken", read: audio },
	},
	toolCall: {
		index: { why: FORMAT },
		id: { why: FORMAT },
		type: { why: FORMAT },
		function: { why: FORMAT },
		custom: { why: FORMAT },
		extra_content: { why: NEXT_TURN, read: extraContent },
		thought_signature: { why: NEXT_TURN, read: opaqueText },
	},
};

const OURS = "this service sends its own";
const ROUTE = "says where the answer was made";
const COST = "the operator's own prices";
const INSIDE = "the server's inner state";
const PROMPT = "repeats the prompt as the server rendered it";
const TIMES = "how the server is loaded and built";

/** Fields about the server. */
export const WITHHELD: Fields<string> = {
	answer: {
		id: OURS,
		object: OURS,
		created: OURS,
		model: "the server's name of the model may be a path or another vendor's; the deployment's id replaces it",
		provider: ROUTE,
		model_path: ROUTE,
		metadata: INSIDE,
		metrics: TIMES,
		timings: TIMES,
		stats: TIMES,
		model_info: TIMES,
		runtime: TIMES,
		x_groq: "ids and queue times of a provider; its usage is the usage",
		nvext: INSIDE,
		sglext: INSIDE,
		hidden_states: INSIDE,
		kv_transfer_params: "addresses of its neighbours",
		ec_transfer_params: "addresses of its neighbours",
		prompt: PROMPT,
		prompt_text: PROMPT,
		prompt_token_ids: PROMPT,
		prompt_logprobs: PROMPT,
		prompt_progress: TIMES,
		__verbose: PROMPT,
		cost: COST,
		obfuscation: "padding of one hop, which is not the client's",
		p: "padding of one hop, which is not the client's",
		prompt_filter_results: "a provider's own moderation, in no form of the interface",
		images: "no modality that is sold here",
		related_questions: "suggestions of a provider's own page",
	},
	choice: {
		stop_reason: "the token or string that ended it, in one server's form; `finish_reason` says what clients read",
		matched_stop: "as `stop_reason`",
		native_finish_reason: "as `stop_reason`, in a provider's words",
		token_ids: INSIDE,
		prompt_token_ids: PROMPT,
		routed_experts: INSIDE,
		hidden_states: INSIDE,
		meta_info: INSIDE,
		seed: INSIDE,
		content_filter_results: "a provider's own moderation, in no form of the interface",
		text: "the form of another endpoint",
	},
	message: {
		name: "no part of an answer",
		tool_call_id: "no part of an answer",
		executed_tools: "what a provider ran for itself",
		provider_specific_fields: "a proxy's bag of whatever its provider sent",
		images: "no modality that is sold here",
		channel: INSIDE,
		token_id: INSIDE,
		prefix: "no part of an answer",
	},
	toolCall: { provider_specific_fields: "a proxy's bag of whatever its provider sent" },
};

type Reader = readonly [name: string, read: (value: unknown) => unknown];

function readersOf(fields: Readonly<Record<string, Passed>>, names = Object.keys(fields)): readonly Reader[] {
	return names.flatMap((name): Reader[] => {
		const read = fields[name]?.read;
		return read === undefined ? [] : [[name, read]];
	});
}

/** Lists of sources: they leave once, at the end of a stream. */
const SOURCES = ["citations", "search_results"];
export const ABOUT_READERS = readersOf(PASSED.answer, ["service_tier", "system_fingerprint"]);
export const SOURCE_READERS = readersOf(PASSED.answer, SOURCES);
export const MESSAGE_READERS = readersOf(PASSED.message);
export const TOOL_CALL_READERS = readersOf(PASSED.toolCall);
