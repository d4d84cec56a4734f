import { failureOfError, failureOfStatus } from "./call/failure.ts";
import { chatRequestText } from "./chat/chat-request.ts";
import type { Dialect } from "./dialect.ts";
import { atServerRoot } from "./replicas/health-url.ts";

/**
 * Ollama's OpenAI route knows only `max_tokens`: with the newer name it would generate without a limit. It gives one
 * choice whatever is asked. Its zeros for usage that is not known are dropped where usage is read.
 */
const RULES = { limitField: "max_tokens", choices: false, omit: new Set(["logit_bias"]) } as const;

export const dialectOllama: Dialect = {
	name: "ollama",
	usageStyle: "last",
	unaryUsageCoversChoices: true,
	chatRequest: (fields, context) => chatRequestText(fields, context, RULES),
	failureOfStatus,
	failureOfError,
	healthUrl: (baseUrl) => atServerRoot(baseUrl, "/api/version"),
};
