import type { DialectName } from "../../catalog/model.ts";
import { type ChatRequestRules, chatRequestText } from "../chat/chat-request.ts";
import type { Replica } from "../replicas/replica.ts";

/** Which prompts a server family takes beside one text. */
export interface PromptForms {
	readonly many: boolean;
	/** Token ids in the place of text. */
	readonly tokens: boolean;
}

const ALL_FORMS: PromptForms = { many: true, tokens: true };
const FORMS: Partial<Record<DialectName, PromptForms>> = {
	ollama: { many: false, tokens: false },
	tgi: { many: true, tokens: false },
};

export function promptFormsOf(dialect: DialectName): PromptForms {
	return FORMS[dialect] ?? ALL_FORMS;
}

/** Running usage on every event, so that a client that leaves early is charged exactly. */
const RUNNING_USAGE: ChatRequestRules = { streamOptions: { include_usage: true, continuous_usage_stats: true } };

/** The older endpoint knows one name of the output limit, `max_tokens`, in every family. */
const RULES: Partial<Record<DialectName, ChatRequestRules>> = {
	vllm: RUNNING_USAGE,
	sglang: RUNNING_USAGE,
	ollama: { choices: false, omit: new Set(["logit_bias", "best_of"]) },
	tgi: {
		choices: false,
		omit: new Set(["logit_bias", "best_of"]),
		reshape: (name, value) => (name === "stop" && typeof value === "string" ? [value] : value),
	},
};

/** The JSON text of a completion request. `fields` hold the prompt and what the deployment honours of the rest. */
export function completionRequestText(
	replica: Replica,
	request: { fields: Readonly<Record<string, unknown>>; outputLimit: number; n: number; stream: boolean },
): string {
	const { fields, outputLimit, n, stream } = request;
	const context = { upstreamModel: replica.spec().model, stream, outputLimit, n, parameters: NO_PARAMETERS };
	return chatRequestText(fields, context, RULES[replica.dialect.name]);
}

const NO_PARAMETERS: ReadonlySet<string> = new Set();
