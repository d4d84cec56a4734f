/** Fields of real servers that the gateway never sends to clients, by the reason. */
const OURS = "the gateway sends its own";
const ROUTE = "reveals the server or the provider";
const INSIDE = "the server's inner state";
const PROMPT = "repeats the prompt as the server rendered it";
const LOAD = "how the server is loaded and built";
const MODERATION = "a provider's own moderation, in no form of the interface";
const REASON = "one server's form of `finish_reason`";
const PROXY = "whatever a proxy's provider sent";
const OTHER = "no part of an answer, or a modality that is not sold here";

type Place = "answer" | "choice" | "message" | "toolCall";

const BY_REASON: Readonly<Record<Place, Readonly<Record<string, string>>>> = {
	answer: {
		[OURS]: "id object created model obfuscation p x_groq",
		[ROUTE]: "provider model_path kv_transfer_params ec_transfer_params cost",
		[INSIDE]: "metadata nvext sglext hidden_states",
		[LOAD]: "metrics timings stats model_info runtime prompt_progress",
		[PROMPT]: "prompt prompt_text prompt_token_ids prompt_logprobs __verbose",
		[MODERATION]: "prompt_filter_results",
		[OTHER]: "images related_questions",
	},
	choice: {
		[OURS]: "usage",
		[REASON]: "stop_reason matched_stop native_finish_reason",
		[INSIDE]: "token_ids routed_experts hidden_states meta_info seed",
		[PROMPT]: "prompt_token_ids",
		[MODERATION]: "content_filter_results",
		[OTHER]: "text",
	},
	message: {
		[OTHER]: "name tool_call_id prefix",
		[PROXY]: "provider_specific_fields executed_tools",
		[INSIDE]: "channel token_id",
	},
	toolCall: { [PROXY]: "provider_specific_fields" },
};

export const withheldAt = (place: Place): string[] =>
	Object.values(BY_REASON[place]).flatMap((names) => names.split(" "));
