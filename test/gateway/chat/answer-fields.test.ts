/** The client receives the upstream server's fields about the answer, but none about the server itself. */
import { describe, expect, test } from "bun:test";
import { ask, onlyUsage } from "../../support/chat.ts";
import { chatAnswer, chatEvent, jsonEvents, streamReply, usageEvent, wholeReply } from "../../support/raw-answer.ts";
import { chatModel, withService } from "../../support/service.ts";
import { startUpstream, withUpstream } from "../../support/upstream-server.ts";
import { withheldAt } from "../../wire/withheld-fields.ts";

type Json = Record<string, unknown>;

const upstream = withUpstream("openai");
const service = await withService({
	models: chatModel({ url: upstream.url }),
	limits: "  breaker_failures_in_row: 1000",
});

const USAGE = { prompt_tokens: 9, completion_tokens: 5 };

async function whole(
	answer: Json,
	more: Json = {},
): Promise<{ status: number; answer: Json; choice: Json; message: Json }> {
	const { secret } = await service.customer();
	upstream.next(wholeReply(answer));
	const response = await service.chat(secret, ask("hi", more));
	const body = (await response.json()) as { choices?: { message: Json }[] } & Json;
	const choice = body.choices?.[0] ?? { message: {} };
	return { status: response.status, answer: body, choice, message: choice.message };
}

async function streamed(bodies: readonly Json[], more: Json = {}): Promise<Json[]> {
	const { secret } = await service.customer();
	upstream.next(streamReply(bodies));
	const response = await service.chat(secret, ask("hi", { stream: true, ...more }));
	expect(response.status).toBe(200);
	return jsonEvents(await response.text());
}

const deltasOf = (events: readonly Json[]): Json[] =>
	events.flatMap(({ choices }) => ((choices ?? []) as { delta: Json }[]).map(({ delta }) => delta));

describe("a chat answer whose message content comes in parts", () => {
	const PARTS = [
		{
			type: "thinking",
			thinking: [
				{ type: "text", text: "Let me see. " },
				{ type: "text", text: "Six times seven." },
			],
		},
		{ type: "text", text: "Forty" },
		{ type: "text", text: "-two" },
	];

	test("has the text parts in `content` and the thinking parts in `reasoning_content`", async () => {
		const { message } = await whole(chatAnswer({ content: PARTS }, "stop", { usage: USAGE }));
		expect(message).toEqual({
			role: "assistant",
			content: "Forty-two",
			refusal: null,
			reasoning_content: "Let me see. Six times seven.",
		});
		const deltas = deltasOf(
			await streamed([
				chatEvent({ role: "assistant", content: "" }),
				chatEvent({ content: [{ type: "thinking", thinking: "Let me see." }] }),
				chatEvent({ content: [PARTS[1]] }),
				chatEvent({ content: "-two" }),
				chatEvent({ content: "" }, "stop", { usage: USAGE }),
			]),
		);
		expect(deltas).toEqual([
			{ role: "assistant", content: "", reasoning_content: "Let me see." },
			{ content: "Forty" },
			{ content: "-two" },
			{},
			// The usage event of the stream: no delta and no finish reason.
			{},
		]);
	});

	test("fails without a charge if a part is of an unknown kind", async () => {
		const { accountId, secret } = await service.customer();
		const odd = { content: [{ type: "hologram", data: "…" }] };
		upstream.next(wholeReply(chatAnswer(odd, "stop", { usage: USAGE })));
		expect((await service.chat(secret, ask("hi"))).status).toBe(502);
		expect(Number((await onlyUsage(service, accountId)).charged_nano_usd)).toBe(0);
		const events = await streamed([chatEvent({ content: "Forty" }), chatEvent(odd), chatEvent({}, "stop")]);
		expect(events.at(-2)).toMatchObject({ error: { code: "upstream_error" } });
	});
});

describe("an answer without a finish reason", () => {
	test.each([
		["", "empty"],
		[null, "null"],
		[undefined, "missing"],
	])("gets the finish reason `stop` instead of %p (%s)", async (finish) => {
		const { answer, choice } = await whole(chatAnswer({ content: "Forty-two" }, finish, { usage: USAGE }));
		expect(choice).toMatchObject({ finish_reason: "stop" });
		expect(answer.usage).toMatchObject({ completion_tokens: 5 });
		for (const usage of [[usageEvent(9, 5)], []]) {
			const last = usage.length === 0 ? { usage: USAGE } : {};
			const events = await streamed([
				chatEvent({ content: "Forty" }, finish),
				chatEvent({ content: "-two" }, finish, last),
				...usage,
			]);
			expect(events.at(-2)).toMatchObject({ choices: [{ index: 0, finish_reason: "stop" }] });
			expect(events.at(-1)).toMatchObject({ usage: { completion_tokens: 5 } });
			expect(JSON.stringify(events)).not.toContain("error");
		}
	});

	test("gets the finish reason tool_calls if it has tool calls", async () => {
		const call = { index: 0, id: "call_a", type: "function", function: { name: "find", arguments: "{}" } };
		const events = await streamed([chatEvent({ tool_calls: [call] }, ""), usageEvent(9, 5)]);
		expect(events.at(-2)).toMatchObject({ choices: [{ finish_reason: "tool_calls" }] });
		const { choice } = await whole(chatAnswer({ content: null, tool_calls: [call] }, "", { usage: USAGE }));
		expect(choice.finish_reason).toBe("tool_calls");
	});

	test("fails if its last token count or its content is missing", async () => {
		const events = await streamed([chatEvent({ content: "Forty" })]);
		expect(events.at(-2)).toMatchObject({ error: { code: "upstream_error" } });
		const { secret } = await service.customer();
		for (const bodies of [[usageEvent(9, 0)], [chatEvent({ role: "assistant", content: "" }), usageEvent(9, 0)], []]) {
			upstream.next(streamReply(bodies));
			const response = await service.chat(secret, ask("hi", { stream: true }));
			expect(response.status).toBe(502);
		}
		expect((await whole(chatAnswer({ content: "Forty-two" }, ""))).status).toBe(502);
	});
});

const SIGNED = { google: { thought_signature: "c2lnbmF0dXJl", route: "10.0.0.1" }, cost: 3 };
const DETAILS = [
	{ type: "reasoning.text", text: "Six times seven.", signature: "c2ln", format: "x-v1", index: 0, host: "10.0.0.1" },
	{ type: "reasoning.encrypted", data: "b3BhcXVl", id: "rs_1", format: "x-v1", index: 1 },
];
const CITED = {
	type: "url_citation",
	url_citation: {
		start_index: 0,
		end_index: 5,
		url: "https://example.org/a",
		title: "A",
		content: "forty",
		crawler: "10.0.0.1",
	},
};

describe("fields that a provider adds to its answer", () => {
	const message = {
		content: "Forty-two",
		reasoning: "Six times seven.",
		reasoning_details: DETAILS,
		annotations: [
			CITED,
			{ type: "file", file: { hash: "h", name: "n.pdf", content: [{ type: "text", text: "t" }], path: "/srv" } },
		],
		audio: { id: "audio_1", data: "AAAA", expires_at: 1_900_000_000, transcript: "Forty-two", host: "10.0.0.1" },
		images: [
			{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA", path: "/srv" }, index: 0 },
			{ type: "image_url", image_url: { url: "file:///srv/a.png" } },
		],
		extra_content: SIGNED,
		thinking_blocks: [{ type: "thinking", thinking: "Six times seven.", signature: "c2ln", node: "10.0.0.1" }],
		tool_calls: [
			{ index: 0, id: "call_a", type: "function", function: { name: "find", arguments: "{}" }, extra_content: SIGNED },
			{
				index: 1,
				id: "call_b",
				type: "function",
				function: { name: "find", arguments: "{}" },
				thought_signature: "c2ln",
			},
		],
	};
	const PASSED = {
		reasoning_content: "Six times seven.",
		reasoning_details: [
			{ type: "reasoning.text", text: "Six times seven.", signature: "c2ln", format: "x-v1", index: 0 },
			{ type: "reasoning.encrypted", data: "b3BhcXVl", id: "rs_1", format: "x-v1", index: 1 },
		],
		annotations: [
			{
				type: "url_citation",
				url_citation: { start_index: 0, end_index: 5, url: "https://example.org/a", title: "A", content: "forty" },
			},
			{ type: "file", file: { hash: "h", name: "n.pdf", content: [{ type: "text", text: "t" }] } },
		],
		audio: { id: "audio_1", data: "AAAA", expires_at: 1_900_000_000, transcript: "Forty-two" },
		images: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" }, index: 0 }],
		extra_content: { google: { thought_signature: "c2lnbmF0dXJl" } },
		thinking_blocks: [{ type: "thinking", thinking: "Six times seven.", signature: "c2ln" }],
	};
	const CALLS = [
		{
			id: "call_a",
			type: "function",
			function: { name: "find", arguments: "{}" },
			extra_content: PASSED.extra_content,
		},
		{ id: "call_b", type: "function", function: { name: "find", arguments: "{}" }, thought_signature: "c2ln" },
	];
	const TOP = {
		service_tier: "priority",
		system_fingerprint: "fp_44709d6fcb",
		citations: ["https://example.org/a"],
		search_results: [{ title: "A", url: "https://example.org/a", date: "2026-01-02", node: "10.0.0.1" }],
		provider: "Elsewhere",
		x_groq: { id: "req_upstream" },
		timings: { prompt_ms: 3 },
	};
	const TOP_PASSED = {
		service_tier: "priority",
		system_fingerprint: "fp_44709d6fcb",
		citations: ["https://example.org/a"],
		search_results: [{ title: "A", url: "https://example.org/a", date: "2026-01-02" }],
	};

	test("reach the client in an answer that is not streamed", async () => {
		const { answer, message: got } = await whole(
			chatAnswer(message, "tool_calls", { ...TOP, usage: { ...USAGE, cost: 7, is_byok: true } }),
		);
		expect(got).toEqual({ role: "assistant", content: "Forty-two", refusal: null, ...PASSED, tool_calls: CALLS });
		expect(answer).toMatchObject(TOP_PASSED);
		expect(JSON.stringify(answer)).not.toMatch(/10\.0\.0\.1|Elsewhere|req_upstream|prompt_ms|is_byok|\/srv/);
	});

	test.each([true, false])("reach the client in a stream (usage requested: %p)", async (asked) => {
		const { content, ...rest } = message;
		const more = asked ? { stream_options: { include_usage: true } } : {};
		const events = await streamed(
			[
				chatEvent({ role: "assistant", content }, null, TOP),
				chatEvent(rest, null, TOP),
				chatEvent({}, "tool_calls", TOP),
				{ ...usageEvent(9, 5), ...TOP },
			],
			more,
		);
		expect(deltasOf(events)).toEqual([
			{ role: "assistant", content: "Forty-two" },
			{ ...PASSED, tool_calls: CALLS.map((call, index) => ({ index, ...call })) },
			{},
			...(asked ? [] : [{}]),
		]);
		// Short fields are on every event, as servers send them. Lists are only on the last event.
		for (const event of events)
			expect(event).toMatchObject({ service_tier: "priority", system_fingerprint: "fp_44709d6fcb" });
		expect(events.filter((event) => event.citations !== undefined)).toEqual([events.at(-1) as Json]);
		expect(events.at(-1)).toMatchObject({ ...TOP_PASSED, usage: { completion_tokens: 5 } });
		expect(JSON.stringify(events)).not.toMatch(/10\.0\.0\.1|Elsewhere|req_upstream|prompt_ms|\/srv/);
	});

	test("reach the client if citations are in an event after the stream's finish", async () => {
		const events = await streamed([
			chatEvent({ content: "Forty-two" }),
			chatEvent({}, "stop"),
			{ choices: [], citations: ["https://example.org/a"] },
			usageEvent(9, 5),
		]);
		expect(events.at(-1)).toMatchObject({ citations: ["https://example.org/a"], choices: [{ delta: {} }] });
	});
});

test("appear in no answer if they describe the server", async () => {
	const secretOf = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, `<${name}>`]));
	const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
	const toolCall = { ...secretOf(withheldAt("toolCall")), ...call };
	const message = { ...secretOf(withheldAt("message")), role: "assistant", content: "yes", tool_calls: [toolCall] };
	const choice = { ...secretOf(withheldAt("choice")), index: 0, finish_reason: "stop" };
	const body = { ...secretOf(withheldAt("answer")), usage: USAGE };
	const answers = [
		(await whole({ ...body, choices: [{ ...choice, message }] })).answer,
		...(await streamed([
			{ ...body, usage: null, choices: [{ ...choice, finish_reason: null, delta: message }] },
			{ ...body, choices: [{ ...choice, delta: {} }] },
		])),
	];
	expect(JSON.stringify(answers)).toContain("yes");
	expect(JSON.stringify(answers)).not.toMatch(/<\w+>/);
});

test("a completion without a finish reason has its usage next to a choice", async () => {
	const tgi = startUpstream({ dialect: "tgi" });
	await service.serve(chatModel({ url: tgi.url, dialect: "tgi" }).replace(" n,", ""));
	const { secret } = await service.customer();
	const text = (words: string, more: Json = {}) => ({
		object: "text_completion",
		id: "",
		choices: [{ index: 0, text: words, logprobs: null, finish_reason: "" }],
		...more,
	});
	for (const bodies of [
		[text("Forty"), text("-two"), { ...usageEvent(9, 5), id: "" }],
		[text("Forty"), text("-two", { usage: { prompt_tokens: 9, completion_tokens: 5 } })],
		[
			text("Forty"),
			{ ...text("-two"), choices: [{ index: 0, text: "-two", finish_reason: "length" }] },
			text(""),
			usageEvent(9, 5),
		],
	]) {
		tgi.next(streamReply(bodies));
		const response = await service.post("/v1/completions", secret, { model: "test-model", prompt: "hi", stream: true });
		const events = jsonEvents(await response.text());
		expect(events.map(({ choices }) => (choices as Json[]).length)).toEqual(events.map(() => 1));
		expect(events.at(-2)?.choices).toMatchObject([{ finish_reason: expect.stringMatching(/stop|length/) }]);
		expect(events.at(-1)).toMatchObject({ usage: { completion_tokens: 5, basis: "exact" } });
		expect(events.at(-1)?.choices).toEqual([{ text: "", index: 0, logprobs: null, finish_reason: null }]);
	}
	await tgi.stop();
});
