import { failureOfError, failureOfStatus } from "./call/failure.ts";
import { chatRequestText } from "./chat/chat-request.ts";
import type { Dialect } from "./dialect.ts";
import { atServerRoot } from "./replicas/health-url.ts";

/** Running usage on every event, so that a client that leaves early is charged exactly. */
const RULES = { streamOptions: { include_usage: true, continuous_usage_stats: true } };

export const dialectVllm: Dialect = {
	name: "vllm",
	usageStyle: "per_choice",
	unaryUsageCoversChoices: true,
	chatRequest: (fields, context) => chatRequestText(fields, context, RULES),
	failureOfStatus,
	failureOfError,
	healthUrl: (baseUrl) => atServerRoot(baseUrl, "/health"),
};
