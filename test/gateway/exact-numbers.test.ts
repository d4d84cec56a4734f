import { describe, expect, test } from "bun:test";
import { readLine } from "../../src/batch/batch-line.ts";
import type { DialectName } from "../../src/catalog/model.ts";
import { RAW_FIELD_CHARS_MIN } from "../../src/gateway/body/json-body.ts";
import { localServer } from "../support/at-end.ts";
import { withService } from "../support/service.ts";
import { deployment } from "../support/upstream-endpoints.ts";
import { CHAT_DIALECTS } from "../support/upstream-wire.ts";

/** Numbers beyond a double's precision keep all digits on the way to the model server and back to the client. */

const BIG = "12345678901234567890";
const CALLS = `[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":{"id":${BIG},"far":[-9007199254740993,1.5]}}}]`;
const ARGUMENTS = `{"id":${BIG},"far":[-9007199254740993,1.5]}`;
const USAGE = '"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}';
const WHOLE = `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":${CALLS}},"finish_reason":"tool_calls"}],${USAGE}}`;
const EVENTS = [
	`{"choices":[{"index":0,"delta":{"tool_calls":${CALLS}},"finish_reason":null}]}`,
	'{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
	`{"choices":[],${USAGE}}`,
	"[DONE]",
];

/** Request bodies that the model server received. The server gives only chats a valid answer. */
const sent: string[] = [];
const server = localServer(async (request) => {
	if (request.method !== "POST") return Response.json({ data: [] });
	const text = await request.text();
	sent.push(text);
	return text.includes('"stream":true')
		? new Response(EVENTS.map((event) => `data: ${event}\n\n`).join(""), {
				headers: { "content-type": "text/event-stream" },
			})
		: new Response(WHOLE, { headers: { "content-type": "application/json" } });
});

const url = `http://127.0.0.1:${server.port}/v1`;
const parameters = "tools, metadata, seed, top_k, max_tokens, temperature, response_format";
const RATES: Readonly<Record<string, string>> = { chat: 'input: "1", output: "1"', image: 'image: "0"' };
const model = (id: string, kind: string, dialect: DialectName = "openai") =>
	deployment({ id, kind, url, dialect, rates: RATES[kind] ?? 'input: "1"', parameters });
const service = await withService({
	models: [
		...CHAT_DIALECTS.map((dialect) => model(dialect, "chat", dialect)),
		...["embedding", "rerank", "image"].map((kind) => model(kind, kind)),
	].join("\n"),
	limits: "  breaker_failures_in_row: 1000\n  breaker_failure_share: 1",
});
const { secret } = await service.customer();

async function post(path: string, body: string): Promise<{ status: number; text: string }> {
	const response = await service.post(path, secret, body);
	return { status: response.status, text: await response.text() };
}

/** A member of the request, and the member that the server must receive if it differs. */
const MEMBERS: readonly (readonly [string, string?])[] = [
	[`"metadata":{"id":${BIG},"of":[-9007199254740993,{"x":1}]}`],
	[`"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"maximum":${BIG}}}}}}]`],
	['"seed":9223372036854775807'],
	[`"top_k":-${BIG}`],
	['"temperature":0.30000000000000004'],
	[`"metadata":{"text":"${BIG}","one":1e2}`, `"metadata":{"text":"${BIG}","one":100}`],
	[`"metadata":{"__proto__":${BIG},"toString":1}`],
	[`"metadata":[${BIG}],"metadata":{"a":1}`, '"metadata":{"a":1}'],
	[`"top_k":${BIG},"top\\u005fk":5`, '"top_k":5'],
];
const ENDPOINTS: readonly (readonly [string, string, string])[] = [
	["/v1/embeddings", "embedding", '"input":"x"'],
	["/v1/rerank", "rerank", '"query":"x","documents":["y"]'],
	["/v1/images/generations", "image", '"prompt":"x"'],
	["/v1/completions", "vllm", '"prompt":"x"'],
];

describe("numbers of a request reach the model server with all digits", () => {
	test.each(CHAT_DIALECTS)("in a chat for dialect %s", async (dialect) => {
		for (const [member, arrives = member] of MEMBERS)
			for (const stream of [false, true])
				for (const filler of ["x", "y".repeat(RAW_FIELD_CHARS_MIN)]) {
					const messages = `"messages":[{"role":"user","content":"${filler}"}]`;
					const { status } = await post(
						"/v1/chat/completions",
						`{"model":"${dialect}",${member},${messages},"stream":${stream}}`,
					);
					expect(status).toBe(200);
					expect(sent.at(-1)).toContain(arrives);
					expect(sent.at(-1)).toContain(filler);
				}
	});

	test.each(ENDPOINTS)("at endpoint %s", async (path, id, prompt) => {
		for (const [member, arrives = member] of MEMBERS) {
			await post(path, `{"model":"${id}",${prompt},${member}}`);
			expect(sent.at(-1)).toContain(arrives);
		}
	});

	test("in tool call arguments that a client sends back as an object", async () => {
		for (const filler of ["x", "y".repeat(RAW_FIELD_CHARS_MIN)]) {
			const call = `{"role":"assistant","content":null,"tool_calls":${CALLS}}`;
			const messages = `[{"role":"user","content":"${filler}"},${call},{"role":"tool","tool_call_id":"c","content":"x"}]`;
			expect((await post("/v1/chat/completions", `{"model":"vllm","messages":${messages}}`)).status).toBe(200);
			expect(sent.at(-1)).toContain(JSON.stringify(ARGUMENTS));
		}
	});
});

test.each(CHAT_DIALECTS)("numbers in an answer's tool call arguments keep all digits (%s)", async (dialect) => {
	for (const stream of [false, true]) {
		const body = `{"model":"${dialect}","messages":[{"role":"user","content":"x"}],"stream":${stream}}`;
		const { text } = await post("/v1/chat/completions", body);
		expect(text).toContain(JSON.stringify(ARGUMENTS));
	}
});

test("a number too large for a double is refused with its field's name", async () => {
	const before = sent.length;
	for (const [name, value] of [
		["top_k", "1e400"],
		["max_tokens", "-1E+0400"],
		["metadata", '{"a":[1e999]}'],
		["messages", `[{"role":"user","content":"${"y".repeat(RAW_FIELD_CHARS_MIN)}","at":1e400}]`],
		["seed", "9".repeat(400)],
	]) {
		const body = `{"model":"vllm","messages":[{"role":"user","content":"x"}],"${name}":${value}}`;
		const { status, text } = await post("/v1/chat/completions", body);
		const { error } = JSON.parse(text) as { error: Record<string, unknown> };
		expect([name, status, error.code, error.param]).toEqual([name, 400, "invalid_request", name]);
	}
	expect(sent.length).toBe(before);
});

test("a number too large for a double is refused among more than 5,000 values", async () => {
	const values = `${"1,".repeat(5_001)}${BIG}`;
	const body = (metadata: string) =>
		`{"model":"vllm","messages":[{"role":"user","content":"x"}],"metadata":[[${metadata}]]}`;
	expect((await post("/v1/chat/completions", body(values))).status).toBe(400);
	expect((await post("/v1/chat/completions", body(values.replace(BIG, "1")))).status).toBe(200);
	const half = `${"1,".repeat(2_501)}${BIG}`;
	expect((await post("/v1/chat/completions", body(half))).status).toBe(200);
	expect((await post("/v1/chat/completions", body(`${half}]],"other":[[${half}`))).status).toBe(400);
});

test("the numbers in a batch line reach the model server with all digits", async () => {
	const body = `{"model": "m", "metadata":{"id":${BIG}}, "input":["a","b"]}`;
	const line = await readLine(
		`{"custom_id":"1","method":"POST","url":"/v1/embeddings","body":${body}}`,
		"/v1/embeddings",
	);
	expect(line).toEqual({ customId: "1", body, inputs: 2, model: "m" });
});
