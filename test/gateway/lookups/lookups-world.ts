import { withService } from "../../support/service.ts";
import { deployment, withEndpoints } from "../../support/upstream-endpoints.ts";

/** Cost of a completion from `withLookups`: 3 prompt tokens and 3 output tokens. */
export const COST = "0.000009";

/** A service with one available model and one model whose server is down. */
export async function withLookups() {
	const upstream = withEndpoints("vllm");
	const rates = 'input: "1", output: "2"';
	const parameters = "max_tokens";
	const service = await withService({
		models: [
			deployment({ id: "text", url: upstream.url, rates, parameters }),
			deployment({ id: "gone", kind: "rerank", url: "http://127.0.0.1:9/v1", rates: 'search: "1"' }),
		].join("\n"),
	});
	return {
		upstream,
		service,
		complete: (secret: string, more: object = {}) =>
			service.post("/v1/completions", secret, { model: "text", prompt: "a b c", max_tokens: 10, ...more }),
	};
}
