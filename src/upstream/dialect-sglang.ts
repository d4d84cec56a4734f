import { failureOfError, failureOfStatus, isContextOverflow, readUpstreamError } from "./call/failure.ts";
import { chatRequestText } from "./chat/chat-request.ts";
import type { Dialect } from "./dialect.ts";
import { UpstreamFailure } from "./reply.ts";

/** Running usage on every event, so that a client that leaves early is charged exactly. */
const RULES = { streamOptions: { include_usage: true, continuous_usage_stats: true } };

export const dialectSglang: Dialect = {
	name: "sglang",
	usageStyle: "per_choice",
	unaryUsageCoversChoices: true,
	chatRequest: (fields, context) => chatRequestText(fields, context, RULES),
	failureOfStatus,
	/** Requests that it finds malformed only after the stream has begun come as an event with code 400. */
	failureOfError(value) {
		const error = readUpstreamError(value);
		if (error.code !== "400" || isContextOverflow(error)) return failureOfError(value);
		return new UpstreamFailure("rejected", {
			status: 400,
			param: error.param,
			private: `error event 400: ${error.message}`,
		});
	},
	/** Its `/health` runs a generation in some versions. */
	healthUrl: (baseUrl) => `${baseUrl}/models`,
};
