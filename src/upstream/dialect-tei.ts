import { Fault } from "../base/fault.ts";
import { failureOfError, failureOfStatus } from "./call/failure.ts";
import type { Dialect } from "./dialect.ts";
import { atServerRoot } from "./replicas/health-url.ts";

/** Text Embeddings Inference: embeddings and reranking only. */
export const dialectTei: Dialect = {
	name: "tei",
	usageStyle: "last",
	unaryUsageCoversChoices: true,
	chatRequest() {
		throw new Fault("unsupported_mode", "This model does not generate chat completions.", { param: "model" });
	},
	failureOfStatus,
	failureOfError,
	healthUrl: (baseUrl) => atServerRoot(baseUrl, "/health"),
};
