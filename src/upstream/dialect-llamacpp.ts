import { failureOfError, failureOfStatus } from "./call/failure.ts";
import { chatRequestText } from "./chat/chat-request.ts";
import type { Dialect } from "./dialect.ts";
import { atServerRoot } from "./replicas/health-url.ts";
import { UpstreamFailure } from "./reply.ts";

/** The server of llama.cpp. Each choice of a stream ends with a usage record of its own. */
export const dialectLlamaCpp: Dialect = {
	name: "llama.cpp",
	usageStyle: "sum",
	unaryUsageCoversChoices: false,
	chatRequest: (fields, context) => chatRequestText(fields, context),
	failureOfStatus(status, bodyText) {
		// "Not supported" by this build: the request's to mend, another try changes nothing.
		if (status === 501) return new UpstreamFailure("rejected", { status, private: `status 501: ${bodyText}` });
		return failureOfStatus(status, bodyText);
	},
	failureOfError,
	healthUrl: (baseUrl) => atServerRoot(baseUrl, "/health"),
};
