import { expect, test } from "bun:test";
import { ask, errorOf, postJson } from "../support/chat.ts";
import { withChat } from "../support/service.ts";
import { reply } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

const OPEN_MAX = 8;
const ACCOUNT_MAX = 6;

const { upstream, service } = await withChat({ dialect: "vllm", limits: `  open_requests: ${OPEN_MAX}` });
const [greedy, modest, late] = [await service.customer(), await service.customer(), await service.customer()];
const chat = ({ secret }: { secret: string }, more: Record<string, unknown> = {}) =>
	service.post("/v1/chat/completions", secret, ask("one two", more));

async function hold(customer: { secret: string }, count: number, until: Promise<void>): Promise<Response[]> {
	const streams: Response[] = [];
	for (let nth = 0; nth < count; nth += 1) {
		upstream.next(reply().text(["a", "b"]).pauseAfter(1, until));
		streams.push(await chat(customer, { stream: true }));
	}
	expect(streams.map(({ status }) => status)).toEqual(Array.from({ length: count }, () => 200));
	return streams;
}

async function expectFull(): Promise<void> {
	const gate = Promise.withResolvers<void>();
	const streams = await hold(greedy, ACCOUNT_MAX, gate.promise);
	const own = await errorOf(await chat(greedy));
	expect([own.status, own.error.code, own.headers.get("retry-after")]).toEqual([429, "rate_limit_exceeded", "1"]);
	streams.push(...(await hold(modest, 1, gate.promise)));
	expect((await errorOf(await chat(modest))).status).toBe(503);
	streams.push(...(await hold(late, OPEN_MAX - ACCOUNT_MAX - 1, gate.promise)));
	const before = upstream.requests.length;
	const refused = await Promise.all(Array.from({ length: 50 }, async () => errorOf(await chat(modest))));
	for (const { status, error, headers } of refused)
		expect([status, error.code, headers.get("retry-after")]).toEqual([503, "overloaded", "1"]);
	expect(upstream.requests.length).toBe(before);
	for (const path of ["/livez", "/readyz", "/status", "/api/console/public/models"])
		expect([path, (await fetch(`${service.url}${path}`)).status]).toEqual([path, 200]);
	gate.resolve();
	for (const stream of streams) expect(await stream.text()).toContain("[DONE]");
}

test("an account gets a place for its request although two accounts send too many", async () => {
	await expectFull();
	expect((await chat(modest)).status).toBe(200);
});

test("a request frees its account's place however the request ends", async () => {
	const leaving = async (stream: boolean) => {
		const controller = new AbortController();
		upstream.next(reply().text(["a", "b"]).hang());
		const before = upstream.requests.length;
		const { signal } = controller;
		const path = `${service.url}/v1/chat/completions`;
		const answer = postJson(path, greedy.secret, ask("one", { stream }), { signal }).catch(() => undefined);
		await waitFor(() => upstream.requests.length > before, "the request");
		controller.abort();
		await answer;
	};
	for (let round = 0; round < ACCOUNT_MAX; round += 1) {
		await (await chat(greedy, { stream: round % 2 === 0 })).text();
		upstream.next(reply().errorStatus(400));
		await (await chat(greedy)).text();
		upstream.next(reply().text(["a", "b"]).dieAfter(1));
		await (await chat(greedy, { stream: true })).text().catch(() => "");
		expect((await chat(greedy, { max_tokens: -1 })).status).toBe(400);
		await leaving(round % 2 === 0);
	}
	await service.settled();
	await expectFull();
});

const poor = await service.customer({ exactCredit: 0 });
await chat(poor);

test.each([
	["/v1/models", "wrong", 900, 401],
	["/v1/models", "poor", 900, 200],
	["/v1/chat/completions", "wrong", 900, 401],
	["/v1/chat/completions", "poor", 900, 400],
	["/v1/nothing", "wrong", 900, 404],
	["/v1/completions", "poor", 900, 405],
	["/status", "wrong", 900, 200],
	["/openapi.json", "wrong", 60, 200],
])("requests for %s with a %s key wait beyond a limit, and delay no customer", async (path, kind, count, expected) => {
	const authorization = `Bearer ${kind === "poor" ? poor.secret : kind}`;
	const beganMs = performance.now();
	const method = path === "/v1/chat/completions" ? "POST" : "GET";
	const sent = Array.from({ length: count }, async () => {
		const response = await fetch(`${service.url}${path}`, { method, headers: { authorization } });
		await response.bytes();
		return response.status;
	});
	// A connection of its own, because `fetch` sends at most 256 requests at the same time.
	const client = await service.openChat(late.secret, ask("one two"));
	const answer = client.until("usage");
	expect(await Promise.race([answer, Promise.all(sent)])).toContain("HTTP/1.1 200 ");
	expect(new Set(await Promise.all(sent)).difference(new Set([expected, 429]))).toEqual(new Set());
	// At most 25 ms of work in each window of 250 ms.
	expect(performance.now() - beganMs).toBeGreaterThan(700);
});
