import { failureOfError, failureOfStatus } from "./call/failure.ts";
import { chatRequestText } from "./chat/chat-request.ts";
import type { Dialect } from "./dialect.ts";
import { atServerRoot } from "./replicas/health-url.ts";

/**
 * Text Generation Inference. `stop` must be an array; its `logit_bias` is another type than the interface's; both names
 * of the output limit at once are a duplicate field; `n` is ignored.
 */
const RULES = {
	limitField: "max_tokens",
	choices: false,
	omit: new Set(["logit_bias"]),
	reshape: (name: string, value: unknown) => (name === "stop" && typeof value === "string" ? [value] : value),
} as const;

export const dialectTgi: Dialect = {
	name: "tgi",
	usageStyle: "last",
	unaryUsageCoversChoices: true,
	chatRequest: (fields, context) => chatRequestText(fields, context, RULES),
	failureOfStatus,
	failureOfError,
	healthUrl: (baseUrl) => atServerRoot(baseUrl, "/health"),
};
