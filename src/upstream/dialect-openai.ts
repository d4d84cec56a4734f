import { failureOfError, failureOfStatus } from "./call/failure.ts";
import { chatRequestText } from "./chat/chat-request.ts";
import type { Dialect } from "./dialect.ts";

/** Anything that speaks the OpenAI format and is none of the families known by name. */
export const dialectOpenai: Dialect = {
	name: "openai",
	usageStyle: "last",
	unaryUsageCoversChoices: true,
	chatRequest(fields, context) {
		// Reasoning models refuse `max_tokens`; the deployment's parameters say which of the two it takes.
		const { parameters } = context;
		const modern = parameters.has("max_completion_tokens") && !parameters.has("max_tokens");
		return chatRequestText(fields, context, { limitField: modern ? "max_completion_tokens" : "max_tokens" });
	},
	failureOfStatus,
	failureOfError,
	healthUrl: (baseUrl) => `${baseUrl}/models`,
};
