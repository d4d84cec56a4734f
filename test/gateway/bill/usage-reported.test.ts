/**
 * Which counts of a server's usage record are charged at every endpoint, whole and streamed, also if they contradict
 * each other.
 */
import { describe, expect, test } from "bun:test";
import { deploymentsYaml, TARGETS, usageInAnswer } from "../../fuzz/targets.ts";
import { ask, onlyUsage, priceOf } from "../../support/chat.ts";
import { PROMPT_TOKENS_ESTIMATED } from "../../support/dialect-cells.ts";
import { chatModel, withService } from "../../support/service.ts";
import { withEndpoints } from "../../support/upstream-endpoints.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";

type Json = Record<string, unknown>;

const endpoints = withEndpoints("openai");
const upstream = withUpstream();
const service = await withService({
	models: [
		deploymentsYaml(endpoints.url).replace('rates: { input: "1" }', 'rates: { input: "1", cached_input: "0.5" }'),
		chatModel({ id: "inside", url: upstream.url }),
		`${chatModel({ id: "beside", url: upstream.url })}\n        reasoning_tokens: beside`,
	].join("\n"),
});

const HALVES = { prompt_tokens: 6, completion_tokens: 5 };
const exact = (cached: number) => ({ cached, basis: "exact" });
const CASES: readonly [string, Json, { cached: number; basis: string }][] = [
	["prompt_tokens_details", { ...HALVES, prompt_tokens_details: { cached_tokens: 4 }, total_tokens: 11 }, exact(4)],
	["input_tokens_details", { ...HALVES, input_tokens_details: { cached_tokens: 4 } }, exact(4)],
	["prompt_cache_hit_tokens", { ...HALVES, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 2 }, exact(4)],
	["cached_tokens", { ...HALVES, cached_tokens: 4 }, exact(4)],
	["cache_read_input_tokens", { ...HALVES, cache_read_input_tokens: 4 }, exact(4)],
	["the newer names", { input_tokens: 6, output_tokens: 5, input_tokens_details: { cached_tokens: 4 } }, exact(4)],
	["more cached than prompt tokens", { ...HALVES, cached_tokens: 7 }, { cached: 0, basis: "estimated" }],
	["a total that is no sum", { ...HALVES, total_tokens: 20 }, { cached: 0, basis: "estimated" }],
];

async function answered(path: string, secret: string, body: Json | FormData): Promise<Json | undefined> {
	const answer = await service.post(path, secret, body);
	const text = await answer.text();
	expect([answer.status, text]).toEqual([200, text]);
	return usageInAnswer(text);
}

test.each(TARGETS.map((target) => [target.name, target] as const))(
	"the endpoint %s charges the tokens that the model server reports",
	async (name, target) => {
		const { model, path } = target;
		const { accountId, secret } = await service.customer();
		const told: unknown[] = [];
		for (const [, usage] of CASES) {
			const { body, contentType } = target.answer(usage);
			endpoints.next(() => new Response(body, { headers: { "content-type": contentType } }));
			told.push((await answered(path, secret, target.request()))?.basis);
		}
		await service.settled();
		const rows = (await service.usage(accountId)).toSorted((a, b) =>
			String(a.request_id) < String(b.request_id) ? -1 : 1,
		);
		const generates = !["embeddings", "rerank"].includes(name);
		for (const [at, [place, , { cached, basis }]] of CASES.entries()) {
			const row = rows[at];
			expect({ place, ...row }).toMatchObject({
				place,
				prompt_tokens: 6,
				cached_tokens: cached,
				completion_tokens: generates ? 5 : 0,
				// Servers report audio seconds only in unstreamed answers, so a stream's seconds are estimated.
				basis: model !== "audio" ? basis : name.endsWith("streamed") ? "estimated" : "exact",
			});
			if (path.endsWith("completions"))
				expect(Number(row?.charged_nano_usd)).toBe(priceOf(6 - cached, 5) + cached * 500 + 1_000);
		}
		expect(told).toEqual(rows.map(({ basis }) => basis));
	},
);

/** An answer of `n` choices, with a usage record inside each choice or one record in `usage`. */
function answerOf(kind: "chat" | "completions", stream: boolean, records: readonly unknown[], usage?: unknown) {
	const said = (index: number, text: string, finish: string | null) => {
		const message =
			kind === "completions" ? { text } : stream ? { delta: { content: text } } : { message: { content: text } };
		return { index, ...message, finish_reason: finish };
	};
	const last = records.map((record, index) => ({ ...said(index, stream ? "" : "a b", "stop"), usage: record }));
	if (!stream) return reply().raw(JSON.stringify({ choices: last, usage }), "application/json");
	const events = [
		...records.map((_, index) => ({ choices: [said(index, "a b", null)] })),
		...last.map((choice) => ({ choices: [choice], usage: null })),
		...(usage === undefined ? [] : [{ choices: [], usage }]),
	];
	return reply().raw(`${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")}data: [DONE]\n\n`);
}

const KINDS = [
	["chat", false],
	["chat", true],
	["completions", false],
	["completions", true],
] as const;

async function charged(
	kind: "chat" | "completions",
	stream: boolean,
	model: string,
	answer: ReturnType<typeof reply>,
	n = 1,
) {
	upstream.next(answer);
	const body =
		kind === "chat" ? ask("one two three", { n, stream, model }) : { prompt: "one two three", n, stream, model };
	const { accountId, secret } = await service.customer();
	const told = await answered(kind === "chat" ? "/v1/chat/completions" : "/v1/completions", secret, body);
	return { told, row: await onlyUsage(service, accountId) };
}

describe.each(KINDS)("a usage record inside a choice of a %s answer (streamed %p)", (kind, stream) => {
	const record = (prompt_tokens: number, completion_tokens: number) => ({ prompt_tokens, completion_tokens });

	test("is charged exactly", async () => {
		const { row } = await charged(
			kind,
			stream,
			"inside",
			answerOf(kind, stream, [{ ...record(7, 5), cached_tokens: 3 }]),
		);
		expect(row).toMatchObject({ prompt_tokens: 7, cached_tokens: 3, completion_tokens: 5, basis: "exact" });
	});

	test("is added to the record of a second choice, and the prompt counts once", async () => {
		const { row } = await charged(kind, stream, "inside", answerOf(kind, stream, [record(7, 5), record(7, 4)]), 2);
		expect(row).toMatchObject({ prompt_tokens: 7, completion_tokens: 9, basis: "exact" });
	});

	test("is ignored if the answer also has a usage record at its top level", async () => {
		const answer = answerOf(kind, stream, [record(7, 5), record(7, 4)], record(7, 10));
		const { row } = await charged(kind, stream, "inside", answer, 2);
		expect(row).toMatchObject({ prompt_tokens: 7, completion_tokens: 10, basis: "exact" });
	});
});

describe.each(KINDS)("the reasoning tokens of a %s answer (streamed %p)", (kind, stream) => {
	/** Records seen from providers: the total counts the reasoning tokens twice, or `completion_tokens` lacks them. */
	const USAGE = {
		prompt_tokens: 64,
		completion_tokens: 135,
		completion_tokens_details: { reasoning_tokens: 78 },
		total_tokens: 277,
	};
	const contradictions = async (model: string) => {
		const text = await (await service.get("/metrics")).text();
		return Number(
			new RegExp(`^tollgate_replica_usage_contradictions_total{replica="${model}#0".*} (\\d+)$`, "m").exec(text)?.[1],
		);
	};

	test.each([
		["inside", USAGE, 135, "estimated"],
		["inside", { ...USAGE, total_tokens: 199 }, 135, "exact"],
		["beside", USAGE, 213, "exact"],
		["beside", { ...USAGE, total_tokens: 199 }, 213, "estimated"],
		["beside", { prompt_tokens: 64, completion_tokens: 135, total_tokens: 277 }, 213, "exact"],
	] as const)(
		"counted %s the output in usage %j are charged as %d tokens, %s",
		async (model, usage, completion, basis) => {
			const before = await contradictions(model);
			const { row, told } = await charged(kind, stream, model, answerOf(kind, stream, [undefined], usage));
			expect(row).toMatchObject({ prompt_tokens: 64, completion_tokens: completion, reasoning_tokens: 78, basis });
			expect(Number(row.charged_nano_usd)).toBe(priceOf(64, completion));
			expect(told).toMatchObject({ completion_tokens: completion, total_tokens: 64 + completion, basis });
			expect((await contradictions(model)) - before).toBe(basis === "estimated" ? 1 : 0);
		},
	);
});

describe.each(KINDS)("a usage record of a %s answer without one count (streamed %p)", (kind, stream) => {
	test("gets an estimated prompt count if the prompt count is zero", async () => {
		const usage = { prompt_tokens: 0, completion_tokens: 40, total_tokens: 40 };
		const { row } = await charged(kind, stream, "inside", answerOf(kind, stream, [undefined], usage));
		expect(row).toMatchObject({ completion_tokens: 40, basis: "estimated" });
		if (kind === "chat") expect(row.prompt_tokens).toBe(PROMPT_TOKENS_ESTIMATED);
	});

	test("gets an estimated completion count if the completion count is missing", async () => {
		const usage = { prompt_tokens: 70, completion_tokens: null };
		const { row } = await charged(kind, stream, "inside", answerOf(kind, stream, [undefined], usage));
		expect(row).toMatchObject({ prompt_tokens: 70, completion_tokens: 1, basis: "estimated" });
		expect(Number(row.charged_nano_usd)).toBe(priceOf(70, 1));
	});
});
