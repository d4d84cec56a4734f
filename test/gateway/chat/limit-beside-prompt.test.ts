import { describe, expect, test } from "bun:test";
import { ask, errorOf, priceOf } from "../../support/chat.ts";
import { withChat } from "../../support/service.ts";
import { reply } from "../../support/upstream-server.ts";

/**
 * The gateway always sends an output limit, and servers refuse a limit that does not fit into the context after the
 * prompt.
 */

const { upstream, service } = await withChat({ dialect: "vllm" });

const TEXTS = {
	"vLLM 0.8":
		"This model's maximum context length is 8192 tokens. However, you requested 8500 tokens (7476 in the messages, 1024 in the completion). Please reduce the length of the messages or completion.",
	"vLLM 0.10":
		"'max_tokens' or 'max_completion_tokens' is too large: 1024. This model's maximum context length is 8192 tokens and your request has 7476 input tokens.",
	"vLLM 0.30":
		"This model's maximum context length is 8192 tokens. However, you requested 1024 output tokens and your prompt contains at least 7169 input tokens, for a total of at least 8193 tokens.",
	SGLang:
		"Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 8500 tokens: 7476 tokens from the input messages and 1024 tokens for the completion.",
};
const refusal = (message: string) =>
	reply().errorStatus(400, { error: { message, type: "BadRequestError", code: 400 } });

describe.each(Object.entries(TEXTS))(
	"if %s refuses the output limit because the prompt leaves too little context,",
	(_, text) => {
		test.each([false, true])("the gateway repeats the request without `max_tokens` (streamed: %p)", async (stream) => {
			const { accountId, secret } = await service.customer();
			for (const more of [{}, { max_tokens: 1_000 }]) {
				const before = upstream.requests.length;
				upstream.next(refusal(text), reply().text("a b").usage({ prompt: 7_476, completion: 2 }));
				const response = await service.chat(secret, ask("x", { stream, ...more }));
				expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"a')]);
				const sent = upstream.requests.slice(before).map(({ body: { max_tokens: limit } }) => limit);
				expect(sent).toEqual([more.max_tokens ?? 1_024, undefined]);
			}
			await service.settled();
			const rows = await service.usage(accountId);
			expect(rows.map(({ charged_nano_usd: charged }) => Number(charged))).toEqual([
				priceOf(7_476, 2),
				priceOf(7_476, 2),
			]);
		});
	},
);

test.each([
	["chat/completions", {}, 2],
	// Completions need no second call: without a limit servers stop after 16 tokens.
	["completions", { prompt: "x", messages: undefined }, 1],
])("POST %s answers 400 if the prompt alone exceeds the context length", async (path, more, calls) => {
	const { secret } = await service.customer();
	for (const stream of [false, true]) {
		const before = upstream.requests.length;
		upstream.next(...Array.from({ length: calls }, () => refusal(TEXTS.SGLang)));
		const { status, error } = await errorOf(await service.post(`/v1/${path}`, secret, ask("x", { stream, ...more })));
		expect([status, error.code]).toEqual([400, "context_length_exceeded"]);
		expect(upstream.requests.length).toBe(before + calls);
	}
	upstream.next(reply().text("a"));
	expect((await service.chat(secret, ask())).status).toBe(200);
});
