import { describe, expect, test } from "bun:test";
import type { DialectName } from "../../../src/catalog/model.ts";
import { batchesOf, batchModel } from "../../batch/batch-service.ts";
import { operator, PERSON_ENV, signedUp, topUp } from "../../console/person.ts";
import { jsonEvents, messageOf } from "../../support/raw-answer.ts";
import { withService } from "../../support/service.ts";
import { reply, type UpstreamServer, withUpstream } from "../../support/upstream-server.ts";
import { CHAT_DIALECTS } from "../../support/upstream-wire.ts";

/** Answers of every dialect that differ from OpenAI's, sent to a batch line and to a playground chat. */

type Json = Record<string, unknown>;

const upstreams = new Map(CHAT_DIALECTS.map((dialect) => [dialect, withUpstream(dialect)]));
const service = await withService({
	models: [...upstreams].map(([dialect, { url }]) => batchModel(url, { id: dialect, dialect })).join("\n"),
	env: PERSON_ENV,
});
const batches = batchesOf(service, undefined as never);
const { secret, accountId } = await service.customer();
const person = await signedUp(service);
await topUp(person, await operator(service));
const { key } = (await person.send("POST", "/api/console/keys", { name: "play" })).body;

interface Kind {
	readonly says?: "calls";
	/** Expected fields of the finished choice, and of the last event or the body. */
	readonly choice?: Json;
	readonly last?: Json;
	readonly ended?: false;
	readonly counts: { readonly prompt: number; readonly cached: number; readonly completion: number } | null;
}

const COUNTED = { prompt_tokens: 10, completion_tokens: 3 };
const USAGE = { usage: COUNTED };
const PLAIN = { prompt: 10, cached: 0, completion: 3 };
const CACHED = { ...PLAIN, cached: 4 };
const KINDS: Readonly<Record<string, Kind>> = {
	"calls with one number": { says: "calls", last: USAGE, counts: PLAIN },
	"cached tokens as hits": { last: { usage: { ...COUNTED, prompt_cache_hit_tokens: 4 } }, counts: CACHED },
	"cached tokens at the top": { last: { usage: { ...COUNTED, cached_tokens: 4 } }, counts: CACHED },
	"newer names": {
		last: { usage: { input_tokens: 10, output_tokens: 3, input_tokens_details: { cached_tokens: 4 } } },
		counts: CACHED,
	},
	"usage in the choice": { choice: USAGE, counts: PLAIN },
	"no end marker": { last: USAGE, ended: false, counts: PLAIN },
	"neither usage nor end marker": { ended: false, counts: null },
};

const CALLS = [
	{ index: 0, id: "a", type: "function", function: { name: "find", arguments: "" } },
	{ index: 0, id: "b", type: "function", function: { name: "list", arguments: '{"q":1}' } },
];
const SHOWN_CALLS = ["a find {}", 'b list {"q":1}'];
const TEXT = ["Salt and", " pepper."];

function eventsOfKind({ says, choice, last, ended }: Kind): string {
	const deltas =
		says === "calls" ? CALLS.map((call) => ({ tool_calls: [call] })) : TEXT.map((content) => ({ content }));
	const events: Json[] = deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }));
	events.push({ choices: [{ index: 0, delta: {}, finish_reason: "stop", ...choice }] });
	if (last !== undefined) events.push({ choices: [], ...last });
	const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
	return ended === false ? text : `${text}data: [DONE]\n\n`;
}

function bodyOfKind({ says, choice, last, ended }: Kind): string {
	const message = says === "calls" ? { content: null, tool_calls: CALLS } : { content: TEXT.join("") };
	const body = JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop", ...choice }], ...last });
	return ended === false ? body : `${body}\ndata: [DONE]\n\n`;
}

/** The server's answer depends on the request's last message, which has the kind and whether to answer with events. */
for (const { decide } of upstreams.values())
	decide(({ messages }) => {
		const [name, form] = String((messages as { content: string }[]).at(-1)?.content).split(", ");
		const kind = KINDS[String(name)] as Kind;
		return form === "events" ? reply().raw(eventsOfKind(kind)) : reply().raw(bodyOfKind(kind), "application/json");
	});

/** The parts of an unstreamed answer that a client reads. */
function saidBy(answer: Json): Json {
	const [{ message, finish_reason: finish }] = answer.choices as [{ message: Json; finish_reason: string }];
	const calls = (message.tool_calls ?? []) as { id: string; function: { name: string; arguments: string } }[];
	const usage = answer.usage as Json & { prompt_tokens_details: Json };
	return {
		content: message.content,
		calls: calls.map(({ id, function: { name, arguments: given } }) => `${id} ${name} ${given}`),
		finish,
		basis: usage.basis,
		counts: [usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens, usage.completion_tokens],
		cost: usage.cost,
	};
}

/** The answer that a client assembles from a stream's events. */
function gathered(text: string): Json {
	const events = jsonEvents(text);
	const finishes = events.flatMap(({ choices }) => (choices as Json[]).map(({ finish_reason: finish }) => finish));
	return {
		choices: [{ message: messageOf(events), finish_reason: finishes.find((finish) => finish !== null) }],
		usage: events.at(-1)?.usage,
	};
}

/** `share`: expected share of the usual rates, which are USD 1, 0.5 and 2 per million tokens. */
function expectKind(name: string, answer: Json, share: number): void {
	const { says, counts } = KINDS[name] as Kind;
	const said = saidBy(answer);
	expect({ name, ...said }).toMatchObject({
		name,
		content: says === "calls" ? (said.content ? "" : said.content) : TEXT.join(""),
		calls: says === "calls" ? SHOWN_CALLS : [],
		finish: says === "calls" ? "tool_calls" : "stop",
		basis: counts === null ? "estimated" : "exact",
	});
	if (counts === null) return;
	const { prompt, cached, completion } = counts;
	const nanoUsd = (prompt - cached) * 1_000 + cached * 500 + completion * 2_000;
	expect({ name, ...said }).toMatchObject({ counts: [prompt, cached, completion], cost: (nanoUsd * share) / 1e9 });
}

const FORMS = ["events", "JSON"];
const asked = (model: string, content: string, more: Json = {}) => ({
	model,
	max_tokens: 64,
	messages: [{ role: "user", content }],
	...more,
});

describe("a batch line for a model server whose format differs from OpenAI's", () => {
	test.each(CHAT_DIALECTS)("with dialect %s gets tool calls and counts of each kind of answer", async (dialect) => {
		const ids = Object.keys(KINDS).flatMap((name) => FORMS.map((form) => `${name}, ${form}`));
		const lines = ids.map((id) =>
			JSON.stringify({ custom_id: id, method: "POST", url: "/v1/chat/completions", body: asked(dialect, id) }),
		);
		const batch = await batches.run(secret, lines);
		expect(batch.request_counts).toEqual({ total: ids.length, completed: ids.length, failed: 0 });
		const answers = await batches.lines(secret, batch.output_file_id);
		expect(answers.map(({ custom_id: id }) => id).toSorted()).toEqual(ids.toSorted());
		for (const { custom_id: id, response } of answers)
			expectKind(String(id.split(",")[0]), response?.body ?? {}, 1 / 2);
	});
});

describe("a playground chat with a model server whose format differs from OpenAI's", () => {
	const cells = CHAT_DIALECTS.flatMap((dialect) => [true, false].map((stream) => [dialect, stream] as const));
	test.each(cells)(
		"with dialect %s, streamed %p, gets tool calls and counts of each answer",
		async (dialect, stream) => {
			for (const name of Object.keys(KINDS))
				for (const form of FORMS) {
					const path = `/api/console/playground/chat?key=${key.id}`;
					const { status, body } = await person.send("POST", path, asked(dialect, `${name}, ${form}`, { stream }));
					expect([name, status]).toEqual([name, 200]);
					expectKind(name, stream ? gathered(body) : body, 1);
				}
		},
	);
});

test("batch lines and playground chats send earlier answers in the server's format", async () => {
	const call = { id: "c", type: "function", function: { name: "f", arguments: '{"cut": "o' } };
	const history = [
		{ role: "user", content: "hi" },
		{ role: "assistant", content: null, reasoning_content: "hm", tool_calls: [call] },
		{ role: "tool", tool_call_id: "c", content: "1" },
		{ role: "user", content: "usage in the choice, JSON" },
	];
	const body = { model: "vllm", messages: history };
	const { requests } = upstreams.get("vllm" as DialectName) as UpstreamServer;
	const path = `/api/console/playground/chat?key=${key.id}`;
	for (const send of [
		() => person.send("POST", path, body),
		() => batches.run(secret, [JSON.stringify({ custom_id: "1", method: "POST", url: "/v1/chat/completions", body })]),
	]) {
		const before = requests.length;
		await send();
		expect(requests.length).toBe(before + 1);
		expect(requests.at(-1)?.body.messages).toContainEqual({
			role: "assistant",
			content: null,
			reasoning: "hm",
			tool_calls: [{ ...call, function: { name: "f", arguments: "{}" } }],
		});
	}
	await service.settled();
	expect(await service.balance(accountId)).toMatchObject({ held: 0 });
	expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
});
