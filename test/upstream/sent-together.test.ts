/** Requests of one event-loop turn are sent at its end, except those whose client has disconnected. */
import { expect, test } from "bun:test";
import { createTickBarrier } from "../../src/base/time-slice.ts";
import { unstreamedChat } from "../../src/upstream/chat/chat-call.ts";
import { chatCall, openChat } from "../support/upstream-catalog.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";
import { upstreamsOver } from "../support/upstream-set.ts";

const MANY = 40;

const upstream = withUpstream("vllm");
const { upstreams, model } = upstreamsOver([upstream.spec({ maxConcurrency: 1_000 })], {
	limits: { queueLengthMax: 0 },
});

/** Starts unstreamed and streamed requests alternately, each with its own id as text. */
function start(uuid: string, nth: number, signal: AbortSignal): Promise<unknown> {
	const call = chatCall({ uuid, requestId: uuid, signal, prompt: [{ role: "user", content: uuid }] });
	return nth % 2 === 0
		? upstreams.call(model, unstreamedChat(model, call, call))
		: openChat(upstreams, model, call).next();
}

test("each of several requests sent in one turn has its own body, id and accept header", async () => {
	upstream.always(() => reply().text("Hello."));
	const ids = Array.from({ length: MANY }, () => Bun.randomUUIDv7());
	const { signal } = new AbortController();
	await Promise.all(ids.map((uuid, nth) => start(uuid, nth, signal)));
	const sent = upstream.requests.map(({ headers, body }) => ({
		id: headers.get("x-request-id"),
		accept: headers.get("accept"),
		text: body.messages,
	}));
	expect(sent).toHaveLength(MANY);
	const alike = ids.map((uuid, nth) => ({
		id: uuid,
		accept: nth % 2 === 0 ? "application/json" : "text/event-stream",
		text: [{ role: "user", content: uuid }],
	}));
	expect(sent).toEqual(expect.arrayContaining(alike));
});

test("a request whose client disconnects in the turn in which it is sent is not sent", async () => {
	const before = upstream.requests.length;
	const leaving = new AbortController();
	const staying = new AbortController();
	const left = start(Bun.randomUUIDv7(), 1, leaving.signal);
	const stays = start(Bun.randomUUIDv7(), 1, staying.signal);
	leaving.abort();
	await expect(left).rejects.toMatchObject({ kind: "aborted" });
	await stays;
	expect(upstream.requests.length - before).toBe(1);
});

test("the tick barrier resolves once per event-loop turn for all callers", async () => {
	const tickBarrier = createTickBarrier();
	const told: string[] = [];
	const first = tickBarrier().then(async () => {
		told.push("a");
		await tickBarrier();
		told.push("c");
	});
	const second = tickBarrier().then(() => told.push("b"));
	expect(told).toEqual([]);
	expect(tickBarrier()).toBe(tickBarrier());
	await Promise.all([first, second]);
	expect(told).toEqual(["a", "b", "c"]);
});
