import { expect, test } from "bun:test";
import { untilEnd } from "../../support/at-end.ts";
import { onlyUsage, priceOf } from "../../support/chat.ts";
import { chatModel, withService } from "../../support/service.ts";
import { startUpstream, type UpstreamServer } from "../../support/upstream-server.ts";

const DIALECTS = ["openai", "vllm", "sglang", "llama.cpp", "ollama", "tgi"] as const;
/** Long enough to be passed on as it was written, with all that an escape can be. */
const WORDS = `line "one"\\n\n\tzwei – 三 \u0001\u2028 {"messages":[]} `.repeat(3_000);
/** Of which no copy is made when it is parsed. */
const PROSE = `${"A line of prose, as people write it. ".repeat(5)}\n`.repeat(100);
const MESSAGES = [
	{ role: "system", content: "be brief", name: null },
	{ role: "user", content: PROSE },
	{ role: "assistant", content: PROSE },
	{
		role: "user",
		content: [
			{ type: "text", text: PROSE },
			{ type: "text", text: "and this" },
		],
	},
	{
		role: "assistant",
		content: null,
		tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: WORDS } }],
	},
	{ role: "tool", tool_call_id: "call_1", content: PROSE },
	{ role: "user", content: WORDS, name: "somebody" },
];

const upstreams = DIALECTS.map((dialect) => untilEnd(startUpstream({ dialect })));
const models = DIALECTS.map((dialect, at) =>
	chatModel({ id: dialect, dialect, url: (upstreams[at] as UpstreamServer).url }),
);
const service = await withService({
	models: models.map((model) => model.replace(/context_length: \d+/, "context_length: 1000000")).join("\n"),
});

for (const [at, dialect] of DIALECTS.entries()) {
	test(`a long prompt reaches ${dialect} as it was meant, beside what the service sets itself, and is charged by the count`, async () => {
		const { accountId, secret } = await service.customer();
		const body = { messages: MESSAGES, model: dialect, max_tokens: 7, temperature: 0.5, user: "x" };
		// Laid out otherwise than any serializer here would.
		const response = await fetch(`${service.url}/v1/chat/completions`, {
			method: "POST",
			headers: { "content-type": "application/json", authorization: `Bearer ${secret}` },
			body: JSON.stringify(body, null, 2).replaceAll("ü", "\\u00fc"),
		});
		expect(response.status).toBe(200);
		await response.text();
		const sent = upstreams[at]?.requests.at(-1)?.body as Record<string, unknown>;
		expect(sent.messages).toEqual(MESSAGES);
		expect(sent.temperature).toBe(0.5);
		expect(sent.max_tokens ?? sent.max_completion_tokens).toBe(7);
		expect(sent).not.toHaveProperty("user");
		const usage = await onlyUsage(service, accountId);
		const prompt = Number(usage.prompt_tokens);
		expect(usage.charged_nano_usd).toBe(String(priceOf(prompt, Number(usage.completion_tokens))));
		expect(prompt).toBeGreaterThan(3_000);
	});
}
