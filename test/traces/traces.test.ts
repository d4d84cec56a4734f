import { expect, test } from "bun:test";
import { localServer } from "../support/at-end.ts";
import { ask, postJson } from "../support/chat.ts";
import { chatModel, type TestService, withService } from "../support/service.ts";
import { deployment, withEndpoints } from "../support/upstream-endpoints.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

const SERVER = 2;
const CLIENT = 3;
const PROMPT = "canary-prompt-of-a-trace";

const collector = startCollector();
const upstream = withUpstream("vllm");
const broken = withUpstream("vllm");
const parted = withEndpoints("tei");
const vectors = deployment({
	id: "vectors",
	kind: "embedding",
	url: parted.url,
	dialect: "tei",
	rates: 'input: "0.1"',
});
const twoReplicas = `${chatModel({ id: "two", url: broken.url, dialect: "vllm" })}
      - url: ${upstream.url}
        model: served-name
        dialect: vllm`;
const traced = (env: Record<string, string>) =>
	withService({
		models: `${chatModel({ url: upstream.url, dialect: "vllm" })}\n${twoReplicas}\n${vectors}`,
		limits: "  breaker_failures_in_row: 1000\n  breaker_failure_share: 1",
		env: {
			OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
			OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
			OTEL_BSP_SCHEDULE_DELAY: "20",
			...env,
		},
	});
const service = await traced({
	OTEL_TRACES_SAMPLER: "always_on",
	OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20of-the-collector",
});
const { secret, accountId, keyId } = await service.customer();

let traces = 0;
function newContext(flags = "01") {
	traces += 1;
	const traceId = `${"a".repeat(28)}${String(traces).padStart(4, "0")}`;
	return { traceId, headers: { traceparent: `00-${traceId}-b7ad6b7169203331-${flags}`, tracestate: "vendor=1" } };
}
const send = (key: string, body: unknown, headers: Record<string, string>, to = service) =>
	postJson(`${to.url}/v1/chat/completions`, key, body, { headers });
async function chat(headers: Record<string, string>, more: Record<string, unknown> = {}, from: TestService = service) {
	const key = from === service ? secret : (await from.customer()).secret;
	return send(key, ask(PROMPT, more), headers, from);
}
const named = (spans: readonly SeenSpan[], name: string) => spans.filter((span) => span.name === name);
const childrenOf = (spans: readonly SeenSpan[], parent?: SeenSpan) =>
	spans.filter((span) => span.parentSpanId === parent?.spanId);

test("the spans of a request are children of the client's span", async () => {
	const { traceId, headers } = newContext();
	const before = upstream.requests.length;
	const response = await chat(headers);
	const answer = await response.json();
	const spans = await collector.trace(traceId, 3);
	const [request] = named(spans, "POST /v1/chat/completions");
	const [model] = childrenOf(spans, request);
	const [call] = childrenOf(spans, model);
	expect(spans.length).toBe(3);
	expect(request).toMatchObject({ parentSpanId: "b7ad6b7169203331", kind: SERVER, failed: false, state: "vendor=1" });
	expect(request?.attributes).toMatchObject({ "http.request.method": "POST", "http.response.status_code": 200 });
	expect(model).toMatchObject({ name: "chat test-model", kind: CLIENT, failed: false });
	expect(model?.attributes).toMatchObject({
		"gen_ai.operation.name": "chat",
		"gen_ai.provider.name": "vllm",
		"gen_ai.request.model": "test-model",
		"gen_ai.usage.input_tokens": answer.usage.prompt_tokens,
		"gen_ai.usage.output_tokens": answer.usage.completion_tokens,
		"tollgate.request": response.headers.get("x-request-id"),
		"tollgate.account": accountId,
		"tollgate.key": keyId,
		"tollgate.ending": "finished",
		"tollgate.charged_nano_usd": answer.usage.prompt_tokens * 1_000 + answer.usage.completion_tokens * 2_000,
	});
	expect(call).toMatchObject({ name: "POST", kind: CLIENT, failed: false });
	const sent = upstream.requests[before]?.headers;
	expect(sent?.get("traceparent")).toBe(`00-${traceId}-${call?.spanId}-01`);
	expect(sent?.get("tracestate")).toBe("vendor=1");
	expect(collector.posts[0]?.path).toBe("/v1/traces");
	expect(collector.posts[0]?.headers.get("authorization")).toBe("Bearer of-the-collector");
});

test("the spans of a stream end with its last byte", async () => {
	const whole = newContext();
	await (await chat(whole.headers, { stream: true })).text();
	const spans = await collector.trace(whole.traceId, 3);
	expect(named(spans, "chat test-model")[0]?.attributes["tollgate.ending"]).toBe("finished");
	const left = newContext();
	const held = Promise.withResolvers<void>();
	upstream.next(reply().text(["a", "b", "c"]).pauseAfter(1, held.promise));
	const stream = (await chat(left.headers, { stream: true })).body?.getReader();
	await stream?.read();
	await stream?.cancel();
	const cut = await collector.trace(left.traceId, 3);
	held.resolve();
	expect(named(cut, "chat test-model")[0]).toMatchObject({
		failed: true,
		attributes: { "error.type": "client_left", "tollgate.ending": "client_left" },
	});
});

test("each server that was tried has a span with its failure", async () => {
	const { traceId, headers } = newContext();
	broken.next(reply().errorStatus(500, "canary-text-of-a-server"));
	upstream.next(reply().errorStatus(500, "canary-text-of-a-server"));
	const response = await chat(headers, { model: "two" });
	// Both servers failed in the same way, once each.
	expect(response.status).toBe(502);
	const spans = await collector.trace(traceId, 4);
	const [model] = named(spans, "chat two");
	const calls = childrenOf(spans, model);
	expect(calls.map(({ failed, attributes }) => [failed, attributes["error.type"]])).toEqual([
		[true, "failed"],
		[true, "failed"],
	]);
	expect(new Set(calls.map(({ attributes }) => attributes["tollgate.replica"])).size).toBe(2);
	expect(model).toMatchObject({ failed: true, attributes: { "error.type": "upstream_failed" } });
});

test("a refused request has a single span", async () => {
	const { traceId, headers } = newContext();
	await send("sk_service_nobody", ask(), headers);
	const [refused] = await collector.trace(traceId, 1);
	expect(refused?.attributes["http.response.status_code"]).toBe(401);
	const others = () => collector.spans.filter((span) => !span.traceId.startsWith("aaaa")).length;
	const before = others();
	for (const traceparent of ["00-zz", `ff-${traceId}-b7ad6b7169203331-01`, `00-${"0".repeat(32)}-b7ad6b7169203331-01`])
		await (await chat({ traceparent })).text();
	await waitFor(() => others() === before + 9, "three traces");
});

test("spans contain no prompt, answer, secret or server text", () => {
	const all = collector.posts.map(({ text }) => text).join("\n");
	expect(all).toContain("chat test-model");
	for (const secretText of [PROMPT, "echo:", secret, "canary-text-of-a-server", upstream.url, "served-name"])
		expect(all).not.toContain(secretText);
});

test("a request that is not recorded still forwards its trace context", async () => {
	const other = await traced({ OTEL_TRACES_SAMPLER: "parentbased_always_on" });
	const { traceId, headers } = newContext("00");
	const before = upstream.requests.length;
	await (await chat(headers, {}, other)).text();
	expect(upstream.requests[before]?.headers.get("traceparent")).toBe(headers.traceparent);
	const later = newContext();
	await (await chat(later.headers, {}, other)).text();
	await collector.trace(later.traceId, 3);
	expect(collector.spans.filter((span) => span.traceId === traceId)).toEqual([]);
});

test("a failing collector is logged only once", async () => {
	const other = await traced({ OTEL_TRACES_SAMPLER: "always_on", OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf" });
	const lines = (message: string) => other.logged.filter((line) => line.message === message).length;
	collector.answer(400);
	const from = collector.posts.length;
	for (const round of [1, 2]) {
		expect((await chat({}, {}, other)).status).toBe(200);
		await waitFor(() => collector.posts.length >= from + round, "spans on their way");
	}
	await waitFor(() => lines("traces cannot be sent; they are dropped") === 1, "the warning");
	collector.answer(200);
	expect((await chat({}, {}, other)).status).toBe(200);
	await waitFor(() => lines("traces are sent again") === 1, "the all-clear");
	expect(lines("traces cannot be sent; they are dropped")).toBe(1);
	const last = collector.posts.at(-1);
	expect(last?.headers.get("content-type")).toBe("application/x-protobuf");
	expect(last?.text).toContain("chat test-model");
});

test("a request that is sent in several parts has a span for each part", async () => {
	const { traceId, headers } = newContext();
	// 70 inputs, of which the server accepts 32 per request.
	const input = Array.from({ length: 70 }, (_, at) => `text ${at}`);
	const response = await service.post("/v1/embeddings", secret, { model: "vectors", input }, { headers });
	expect(response.status).toBe(200);
	const calls = named(await collector.trace(traceId, 5), "POST");
	expect(calls.map(({ failed }) => failed)).toEqual([false, false, false]);
	expect(parted.requests.length).toBe(3);
});

interface SeenSpan {
	readonly traceId: string;
	readonly spanId: string;
	readonly parentSpanId?: string;
	readonly name: string;
	readonly kind: number;
	readonly attributes: Readonly<Record<string, string | number>>;
	readonly failed: boolean;
	readonly state: string;
}

interface JsonSpan extends Omit<SeenSpan, "attributes" | "failed" | "state"> {
	readonly traceState?: string;
	readonly status: { code: number };
	readonly attributes: readonly { key: string; value: { stringValue?: string; intValue?: number | string } }[];
}

function startCollector() {
	const spans: SeenSpan[] = [];
	const posts: { headers: Headers; path: string; text: string }[] = [];
	let status = 200;
	const server = localServer(async (request) => {
		const text = await request.text();
		posts.push({ headers: request.headers, path: new URL(request.url).pathname, text });
		if (status !== 200) return new Response("no", { status });
		if (request.headers.get("content-type") === "application/json") spans.push(...spansOf(text));
		return new Response("{}", { headers: { "content-type": "application/json" } });
	});
	return {
		url: `http://127.0.0.1:${server.port}`,
		spans,
		posts,
		answer(next: number) {
			status = next;
		},
		async trace(traceId: string, count: number): Promise<SeenSpan[]> {
			const found = () => spans.filter((span) => span.traceId === traceId);
			await waitFor(() => found().length >= count, `${count} spans of ${traceId}`, 20_000);
			return found();
		},
	};
}

function spansOf(text: string): SeenSpan[] {
	const { resourceSpans } = JSON.parse(text) as { resourceSpans: { scopeSpans: { spans: JsonSpan[] }[] }[] };
	return resourceSpans.flatMap(({ scopeSpans }) =>
		scopeSpans.flatMap(({ spans }) =>
			spans.map(({ attributes, status, traceState, ...span }) => ({
				...span,
				attributes: Object.fromEntries(
					attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]),
				),
				failed: status.code === 2,
				state: traceState ?? "",
			})),
		),
	);
}
