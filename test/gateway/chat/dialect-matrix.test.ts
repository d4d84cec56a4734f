import { describe, expect } from "bun:test";
import {
	type Cell,
	dialectMatrix,
	estimated,
	exact,
	expectCharge,
	expectFree,
	expectUsageOf,
	PROMPT_TOKENS,
	streamedEvents,
	wholeAnswer,
} from "../../support/dialect-cells.ts";
import { messageOf } from "../../support/raw-answer.ts";
import { parseRaw } from "../../support/raw-http.ts";
import { type Reply, reply } from "../../support/upstream-reply.ts";
import { SINGLE_CHOICE } from "../../support/upstream-wire.ts";

/** Runs every dialect through the whole service with complete answers and failures before the first token. */

const UNBROKEN = "  breaker_failures_in_row: 1000\n  breaker_failure_share: 1";
const matrix = await dialectMatrix(UNBROKEN);
/**
 * A service with short timeouts, used only for silent servers: on a busy machine any server may be silent for seconds.
 */
const impatient = await dialectMatrix(`  silence_s: 3\n  first_event_s: 3\n  total_s: 4\n${UNBROKEN}`, { ahead: true });

type Json = Record<string, unknown>;

interface Shape {
	readonly content: string | null;
	readonly reasoning?: string;
	readonly calls?: readonly string[];
	readonly finish: string;
}

interface Kind {
	readonly name: string;
	readonly more: Json;
	readonly answer: () => Reply;
	readonly shape: Shape;
	readonly charge: (cell: Cell<string>, streamed: boolean) => ReturnType<typeof exact>;
}

const FIND = { type: "function", function: { name: "find", parameters: { type: "object", properties: {} } } };

const KINDS: readonly Kind[] = [
	{
		name: "text",
		more: {},
		answer: () =>
			reply()
				.reasoning("hm hm")
				.text("Hëllo there, wörld.")
				.usage({ prompt: PROMPT_TOKENS, completion: 5, cached: 4, reasoning: 2 })
				.lie({
					top: { lie_top: 1, prompt_text: "secret" },
					choice: { lie_choice: 1, stop_reason: 7 },
					delta: { lie_delta: 1 },
				}),
		shape: { content: "Hëllo there, wörld.", reasoning: "hm hm", finish: "stop" },
		charge: () => ({ ...exact(5), nanoUsd: 2 * 1_000 + 4 * 500 + 5 * 2_000 }),
	},
	{
		name: "tools",
		more: { tools: [FIND] },
		answer: () => reply().text("Looking.").toolCall("find", { q: "Zürich" }, "call_a").toolCall("find", {}, "call_b"),
		shape: { content: "Looking.", calls: ['call_a find {"q":"Zürich"}', "call_b find {}"], finish: "tool_calls" },
		charge: () => exact(5),
	},
	{
		name: "output limit reached",
		more: { max_tokens: 2 },
		answer: reply,
		shape: { content: "echo: one", finish: "length" },
		charge: () => exact(2),
	},
	{
		name: "two choices",
		more: { n: 2 },
		answer: reply,
		shape: { content: "echo: one two three", finish: "stop" },
		charge: ({ dialect }) => exact(SINGLE_CHOICE.has(dialect) ? 4 : 8),
	},
	{
		name: "no token count",
		more: {},
		answer: () =>
			reply()
				.text([..."abcdefghijkl"])
				.usage(null),
		shape: { content: "abcdefghijkl", finish: "stop" },
		// Without a usage record each event counts as one token, and an unstreamed answer as one token per four bytes.
		charge(_, streamed) {
			return estimated(streamed ? 12 : 3);
		},
	},
];

for (const [at, kind] of KINDS.entries()) {
	for (const includeUsage of [true, false])
		matrix.cell(
			`a streamed answer (${kind.name}) is forwarded, usage ${includeUsage ? "" : "not "}requested`,
			async ({ send }) => {
				const more = {
					...kind.more,
					stream: true,
					...(includeUsage ? { stream_options: { include_usage: true } } : {}),
				};
				const { client } = await send(more, kind.answer());
				return await client.ended();
			},
			(cell) => {
				expectCharge(cell, { ending: "finished", status: 200, ...kind.charge(cell, true) });
				const events = streamedEvents(cell, includeUsage);
				expectIgnored(cell, kind);
				for (let index = 0; index < choicesOf(cell, kind); index += 1)
					expect(joined(events, index)).toEqual(kind.shape);
				const indexes = new Set(events.flatMap((event) => (event.choices as Json[]).map((choice) => choice.index)));
				expect(indexes.size).toBe(choicesOf(cell, kind));
				// The usage event needs a choice, because some clients that did not request usage read `choices[0]` of every
				// event.
				expect(events.at(-1)?.choices).toEqual(includeUsage ? [] : [{ index: 0, delta: {}, finish_reason: null }]);
			},
			at % 2 === Number(includeUsage) ? 0 : 1,
		);
	matrix.cell(
		`an answer that is not streamed (${kind.name}) is forwarded`,
		async ({ send }) => (await send(kind.more, kind.answer())).client.ended(),
		(cell) => {
			expectCharge(cell, { ending: "finished", status: 200, ...kind.charge(cell, false) });
			const answer = wholeAnswer(cell, 200);
			expectIgnored(cell, kind);
			expectUsageOf(answer, cell.rows[0] ?? {});
			expect(answer).toMatchObject({
				id: `chatcmpl-${String(cell.rows[0]?.request_id).replaceAll("-", "")}`,
				object: "chat.completion",
				model: `model-${cell.dialect}`,
			});
			const choices = answer.choices as Json[];
			expect(choices.map(({ index }) => index)).toEqual([0, 1].slice(0, choicesOf(cell, kind)));
			for (const choice of choices) expect(shapeOf(choice.message as Json, choice.finish_reason)).toEqual(kind.shape);
		},
	);
}

for (const [counted, open] of [
	[true, true],
	[false, true],
	[false, false],
])
	matrix.cell(
		`a stream without an end marker is complete, usage ${counted ? "" : "not "}sent, ${open ? "left open" : "closed"}`,
		async ({ send, upstream }) => {
			const said = reply().text("aaaa bbb");
			const answer = open ? said.stallAfter(2) : said.withoutEndMarker();
			const { client, nth } = await send({ stream: true }, counted ? answer : answer.usage(null));
			if (open) await upstream.waitForAbort(nth);
			return await client.ended();
		},
		(cell) => {
			expectCharge(cell, { ending: "finished", status: 200, ...(counted ? exact(2) : estimated(2)) });
			expect(joined(streamedEvents(cell, false), 0)).toEqual({ content: "aaaa bbb", finish: "stop" });
		},
	);

/**
 * Answers in another form than the request asked for (events instead of JSON, or the reverse), as some servers send
 * them.
 */
const FORMS: [string, (answer: Reply) => Reply][] = [
	["events", (answer) => answer.eventsAs("text/event-stream")],
	["events with the content type of JSON", (answer) => answer.eventsAs("application/json")],
	["one body", (answer) => answer.wholeBody()],
	["status 201", (answer) => answer.status(201)],
];
for (const [at, [form, as]] of FORMS.entries())
	for (const stream of [true, false])
		matrix.cell(
			`an answer in the form of ${form} is understood, ${stream ? "streamed" : "whole"}`,
			async ({ send }) => {
				const answer = reply()
					.reasoning("hm hm")
					.text("Looking.")
					.toolCall("find", {}, "call_a")
					.toolCall("list", { q: 1 }, "call_b");
				return (await send({ stream }, as(answer))).client.ended();
			},
			(cell) => {
				// Without requested usage the first forms contain no counts, so their 30 bytes are estimated as eight tokens.
				const charge = stream || at > 1 ? exact(7) : estimated(8);
				expectCharge(cell, { ending: "finished", status: 200, ...charge });
				const { message, finish_reason } = stream ? {} : ((wholeAnswer(cell, 200).choices as Json[])[0] as Json);
				const shape = stream ? joined(streamedEvents(cell, false), 0) : shapeOf(message as Json, finish_reason);
				expect(shape).toEqual({
					content: "Looking.",
					reasoning: "hm hm",
					calls: ["call_a find {}", 'call_b list {"q":1}'],
					finish: "tool_calls",
				});
			},
			at % 2 === Number(stream) ? 0 : 1,
		);

function choicesOf({ dialect }: Cell<string>, { more }: Kind): number {
	return more.n === 2 && !SINGLE_CHOICE.has(dialect) ? 2 : 1;
}

/** Expects a dialect that ignores `n` to name it in the header `x-ignored-parameters`. */
function expectIgnored(cell: Cell<string>, { more }: Kind): void {
	const ignored = more.n === 2 && SINGLE_CHOICE.has(cell.dialect) ? "n" : null;
	expect(parseRaw(cell.acted).headers.get("x-ignored-parameters")).toBe(ignored);
}

function shapeOf(message: Json, finish: unknown): Shape {
	const calls = (message.tool_calls ?? []) as { id: string; function: { name: string; arguments: string } }[];
	return {
		content: message.content as string | null,
		...(message.reasoning_content === undefined ? {} : { reasoning: String(message.reasoning_content) }),
		...(calls.length === 0
			? {}
			: { calls: calls.map(({ id, function: { name, arguments: args } }) => `${id} ${name} ${args}`) }),
		finish: String(finish),
	};
}

/** The message that a client assembles from the stream's events. */
function joined(events: readonly Json[], index: number): Shape {
	const own = events.flatMap(({ choices }) => choices as Json[]).filter((choice) => choice.index === index);
	const roles = own.filter(({ delta }) => (delta as Json).role !== undefined);
	const finishes = own.filter(({ finish_reason: finish }) => finish !== null);
	expect({ roles: roles.length, finishes: finishes.length }).toEqual({ roles: 1, finishes: 1 });
	return shapeOf(messageOf(events, index), finishes[0]?.finish_reason);
}

describe("a client whose model server fails before the first token", () => {
	const cases: [string, () => Reply[], { status: number; ending: string; code: string }][] = [
		[
			"an error status",
			() => [reply().errorStatus(500, { error: { message: "secret engine trouble" } })],
			{ status: 502, ending: "upstream_failed", code: "upstream_error" },
		],
		[
			"two broken connections",
			() => [reply().reset(), reply().reset()],
			{ status: 502, ending: "upstream_failed", code: "upstream_error" },
		],
		[
			"an error in the answer",
			() => [reply().errorEvent()],
			{ status: 502, ending: "upstream_failed", code: "upstream_error" },
		],
		["silence", () => [reply().hang()], { status: 504, ending: "upstream_silent", code: "upstream_timeout" }],
	];
	for (const [at, [name, answers, { status, ending, code }]] of cases.entries())
		for (const stream of [true, false])
			(name === "silence" ? impatient : matrix).cell(
				`gets ${status} without a charge after ${name}, ${stream ? "streamed" : "whole"}`,
				async ({ send, upstream }) => {
					const replies = answers();
					const { client, nth } = await send({ stream }, ...replies);
					const text = await client.ended();
					expect(upstream.requests.length - nth + 1).toBe(replies.length);
					return text;
				},
				(cell) => {
					// Ollama's stream ends without sending the error, so the gateway sees a stream that was cut off.
					const lost = stream && cell.dialect === "ollama" && name === "an error in the answer";
					expectFree(cell, lost ? "upstream_died" : ending, status);
					expect(wholeAnswer(cell, status)).toEqual({
						error: { message: expect.any(String), type: "server_error", param: null, code },
					});
				},
				at % 2 === Number(stream) ? 1 : 0,
			);
});
