/** A call for an unstreamed answer gets its listeners only after a moment. Events before that moment are not lost. */
import { expect, test } from "bun:test";
import { createTickBarrier } from "../../src/base/time-slice.ts";
import type { CallContext } from "../../src/upstream/call/attempt.ts";
import type { CountedReply, UnaryCall } from "../../src/upstream/call/unary.ts";
import { unstreamedChat } from "../../src/upstream/chat/chat-call.ts";
import { embeddingCall } from "../../src/upstream/embeddings.ts";
import { chatCall, type limitsWith, modelOver, openChat } from "../support/upstream-catalog.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { UPSTREAM_SPEC, upstreamsOver } from "../support/upstream-set.ts";

const MOMENT_MS = 100;

const CHAT_ANSWER = {
	choices: [{ index: 0, message: { role: "assistant", content: "a" }, finish_reason: "stop" }],
	usage: { prompt_tokens: 3, completion_tokens: 1 },
};
const VECTORS = { data: [{ index: 0, embedding: [1] }], usage: { prompt_tokens: 3 } };
const model = modelOver([UPSTREAM_SPEC]);
/** Calls are sent at the end of the event-loop turn in which they begin. */
const tickBarrier = createTickBarrier();

/** Each kind of call for an unstreamed answer, with that answer. */
const CALLS: [string, (context: CallContext) => UnaryCall<CountedReply>, object][] = [
	["a chat", (context) => unstreamedChat(model, context, chatCall()), CHAT_ANSWER],
	["embeddings", (context) => embeddingCall({ inputs: ["x"], fields: {}, base64: false }, context), VECTORS],
];

/** A model server that answers when the test tells it to, unless the caller disconnects. */
function setUp(more: Parameters<typeof limitsWith>[0] = {}) {
	const clock = createManualClock();
	const answer = Promise.withResolvers<Response>();
	const signals: AbortSignal[] = [];
	const fetch = (_: string, { method, signal }: BunFetchRequestInit): Promise<Response> => {
		if (method !== "POST" || !signal) return Promise.resolve(new Response("{}"));
		signals.push(signal);
		signal.addEventListener("abort", () => answer.reject(signal.reason));
		return answer.promise;
	};
	const { upstreams } = upstreamsOver([UPSTREAM_SPEC], { clock, fetch, limits: more });
	const leaving = new AbortController();
	const context: CallContext = { ...chatCall({ signal: leaving.signal }) };
	const isHungUp = () => signals.map(({ aborted }) => aborted);
	return { clock, upstreams, context, leave: () => leaving.abort(), answer, isHungUp };
}

test.each(CALLS)(
	"a call for %s is aborted without blaming the replica if its client disconnects",
	async (_, callOf) => {
		const { clock, upstreams, context, leave, isHungUp } = setUp({ breakerFailuresInRow: 1 });
		const call = upstreams.call(model, callOf(context));
		await tickBarrier();
		leave();
		expect(isHungUp()).toEqual([false]);
		clock.advance(MOMENT_MS);
		expect(isHungUp()).toEqual([true]);
		await expect(call).rejects.toMatchObject({ kind: "aborted" });
		expect(upstreams.replicas()[0]).toMatchObject({ inFlight: 0, breaker: "closed" });
	},
);

test.each(CALLS)(
	"a call for %s fails as aborted if it is answered after its client disconnected",
	async (_, callOf, body) => {
		const { upstreams, context, leave, answer } = setUp({ breakerFailuresInRow: 1 });
		const call = upstreams.call(model, callOf(context));
		leave();
		answer.resolve(Response.json(body));
		await expect(call).rejects.toMatchObject({ kind: "aborted" });
		expect(upstreams.replicas()[0]).toMatchObject({ inFlight: 0, breaker: "closed" });
	},
);

test.each(CALLS)(
	"a call for %s is delivered if it is answered before its client disconnects",
	async (_, callOf, body) => {
		const { upstreams, context, leave, answer } = setUp();
		const call = upstreams.call(model, callOf(context));
		answer.resolve(Response.json(body));
		expect(await call).toMatchObject({ replica: "test-model#0" });
		leave();
	},
);

test("a client's disconnect ends long calls and streams immediately", async () => {
	const lasting = setUp();
	const call = lasting.upstreams.call(model, unstreamedChat(model, lasting.context, chatCall()));
	await tickBarrier();
	lasting.clock.advance(MOMENT_MS);
	lasting.leave();
	expect(lasting.isHungUp()).toEqual([true]);
	await expect(call).rejects.toMatchObject({ kind: "aborted" });

	const streamed = setUp();
	const stream = openChat(streamed.upstreams, model, chatCall({ signal: streamed.context.signal }));
	await tickBarrier();
	streamed.leave();
	expect(streamed.isHungUp()).toEqual([true]);
	await expect(stream.next()).rejects.toMatchObject({ kind: "aborted" });
});

test("a deadline that passes before a call's timer starts ends the call", async () => {
	const { clock, upstreams, context, isHungUp } = setUp({ totalMs: 50 });
	const call = upstreams.call(model, unstreamedChat(model, context, chatCall()));
	await tickBarrier();
	clock.advance(MOMENT_MS);
	expect(isHungUp()).toEqual([true]);
	await expect(call).rejects.toMatchObject({ kind: "timeout", private: "total deadline" });
});
