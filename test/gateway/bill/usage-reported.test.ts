import { expect, test } from "bun:test";
import { ask, onlyUsage, priceOf } from "../../support/chat.ts";
import { PROMPT_ESTIMATE } from "../../support/dialect-cells.ts";
import { withChat } from "../../support/service.ts";
import { reply } from "../../support/upstream-server.ts";

const { upstream, service } = await withChat();

type Usage = Record<string, unknown>;

function answerWith(usage: Usage, stream: boolean) {
	const choice = { index: 0, finish_reason: "stop" };
	if (!stream) {
		const message = { role: "assistant", content: "forty-two" };
		return reply().raw(JSON.stringify({ choices: [{ ...choice, message }], usage }), "application/json");
	}
	const events = [
		{ choices: [{ ...choice, delta: { content: "forty-two" }, finish_reason: null }] },
		{ choices: [{ ...choice, delta: {} }] },
		{ choices: [], usage },
	];
	return reply().raw(`${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")}data: [DONE]\n\n`);
}

async function charged(usage: Usage, stream: boolean) {
	const { accountId, secret } = await service.customer();
	upstream.next(answerWith(usage, stream));
	const response = await service.post("/v1/chat/completions", secret, ask("one two three", { stream }));
	const text = await response.text();
	expect(response.status).toBe(200);
	const last = stream ? (text.split("\n\n").at(-3) as string).slice("data: ".length) : text;
	return { told: (JSON.parse(last) as { usage: Usage }).usage, row: await onlyUsage(service, accountId) };
}

test.each([true, false])("charges reasoning counted beside the completion (streamed %p)", async (stream) => {
	const { told, row } = await charged(
		{
			prompt_tokens: 12,
			completion_tokens: 2,
			total_tokens: 354,
			completion_tokens_details: { reasoning_tokens: 340 },
		},
		stream,
	);
	expect(row).toMatchObject({ prompt_tokens: 12, completion_tokens: 342, reasoning_tokens: 340, basis: "exact" });
	expect(Number(row.charged_nano_usd)).toBe(priceOf(12, 342));
	expect(told).toMatchObject({
		prompt_tokens: 12,
		completion_tokens: 342,
		total_tokens: 354,
		completion_tokens_details: { reasoning_tokens: 340 },
	});
});

test.each([true, false])("estimates a prompt of zero tokens (streamed %p)", async (stream) => {
	const { row } = await charged({ prompt_tokens: 0, completion_tokens: 40, total_tokens: 40 }, stream);
	expect(row).toMatchObject({ prompt_tokens: PROMPT_ESTIMATE, completion_tokens: 40, basis: "estimated" });
	expect(Number(row.charged_nano_usd)).toBe(priceOf(PROMPT_ESTIMATE, 40));
});

test.each([true, false])("estimates a missing completion count (streamed %p)", async (stream) => {
	const { row } = await charged({ prompt_tokens: 70, completion_tokens: null }, stream);
	expect(row).toMatchObject({ prompt_tokens: 70, completion_tokens: 3, basis: "estimated" });
	expect(Number(row.charged_nano_usd)).toBe(priceOf(70, 3));
});
