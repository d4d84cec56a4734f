import { expect, test } from "bun:test";
import type { Admission, Admitted } from "../../../src/admission/admission.ts";
import { silentLog } from "../../../src/base/log.ts";
import { DEFAULT_LIMITS } from "../../../src/catalog/service-limits.ts";
import type { ChatInput } from "../../../src/gateway/chat/chat-request.ts";
import { chat } from "../../../src/gateway/chat/chat-request.ts";
import { IDLE_TIMEOUT_S, STREAM_TIMEOUT_S } from "../../../src/gateway/connection.ts";
import { createContext, type Exchange, type ServeDeps } from "../../../src/gateway/serve/context.ts";
import type { StreamedAnswer } from "../../../src/gateway/serve/endpoint.ts";
import { createOpenStreams } from "../../../src/gateway/serve/open-streams.ts";
import { streamAnswer } from "../../../src/gateway/serve/stream-answer.ts";
import type { Outcome } from "../../../src/ledger/outcome.ts";
import { nanoUsd } from "../../../src/money/nano-usd.ts";
import { UpstreamFailure } from "../../../src/upstream/call/failure.ts";
import type { AnswerStream } from "../../../src/upstream/call/stream-wire.ts";
import type { ChatChunk } from "../../../src/upstream/chat/chat-answer.ts";
import { Prompt } from "../../../src/upstream/prompt.ts";
import { inSteps } from "../../support/in-steps.ts";
import { readerOf } from "../../support/road.ts";
import { modelOver } from "../../support/upstream-catalog.ts";
import { createManualClock } from "../../support/upstream-clock.ts";
import { waitFor } from "../../support/wait.ts";

/** What the connection is told, seen from inside: the runtime's own timeouts are too long for a test. */
function setUp(holdStatusMs: number) {
	const clock = createManualClock();
	const timeouts: number[] = [];
	const outcomes: string[] = [];
	const next: PromiseWithResolvers<readonly ChatChunk[] | null>[] = [];
	const nextStep = () => {
		const step = Promise.withResolvers<readonly ChatChunk[] | null>();
		next.push(step);
		return step.promise;
	};
	const stream: AnswerStream<ChatChunk> = {
		next: nextStep,
		...inSteps(nextStep),
		usage: () => undefined,
		usageIsFinal: () => false,
		replica: () => "m#0",
		tokensLikely: () => undefined,
		close() {},
	};
	const ledger = { progress() {}, durable: () => undefined, settledDurable: () => undefined };
	const model = modelOver([]);
	const admitted = {
		hold: { ledger, bound: 0, reserved: nanoUsd(1_000_000) },
		request: { model, upperBound: { completionTokens: 10 }, choices: 1, key: { accountId: "acc_test" } },
	} as unknown as Admitted;
	const deps = {
		admission: {
			settle(_: Admitted, outcome: Outcome) {
				outcomes.push(outcome.ending);
				return { ...outcome, charged: outcome.costNanoUsd };
			},
		} as unknown as Admission,
		upstreams: { open: () => stream },
		clients: { openStreams: createOpenStreams({ clock }) },
		telemetry: { log: silentLog },
		clock,
		catalog: { limits: () => ({ ...DEFAULT_LIMITS, holdStatusMs }) },
	} as unknown as ServeDeps;
	const input: ChatInput = {
		fields: {},
		maxOutputTokens: 10,
		choices: 1,
		prompt: new Prompt([]),
		stream: true,
		ignored: [],
		includeUsage: false,
		measure: { textBytes: 0, messages: 0, images: 0, hasTools: false },
	};
	const connection = {
		request: new Request("http://test.example/"),
		address: "",
		setIdleTimeout: (seconds: number) => void timeouts.push(seconds),
	};
	const context = createContext("chat", connection, clock);
	const exchange: Exchange<ChatInput> = { context, model, input, admitted, createdS: 0 };
	const streamed = chat.streamed as StreamedAnswer<ChatInput, ChatChunk>;
	const answer = streamAnswer(deps, streamed, exchange);
	return { clock, timeouts, outcomes, next, answer, openStreams: deps.clients.openStreams };
}

const CHUNK: readonly ChatChunk[] = [
	{ choices: [{ index: 0, delta: { content: "a" }, finish_reason: null }], outputBytes: 1 },
];

test("a stream's connection may be idle for longer, and is set back when the stream ends", async () => {
	const { timeouts, next, answer, outcomes, openStreams } = setUp(10_000);
	next[0]?.resolve(CHUNK);
	const reader = (await answer).body?.getReader();
	await reader?.read();
	expect(timeouts).toEqual([STREAM_TIMEOUT_S]);
	await waitFor(() => next.length === 2, "the next read");
	next[1]?.resolve(null);
	await reader?.read();
	expect(timeouts).toEqual([STREAM_TIMEOUT_S, IDLE_TIMEOUT_S]);
	expect(outcomes).toEqual(["finished"]);
	expect(openStreams.size()).toBe(0);
});

test("it is set back after a failure before the first byte, and after one in the middle", async () => {
	const early = setUp(10_000);
	early.next[0]?.reject(new UpstreamFailure("died", { private: "" }));
	await expect(early.answer).rejects.toMatchObject({ code: "upstream_error" });
	expect(early.timeouts.at(-1)).toBe(IDLE_TIMEOUT_S);
	expect(early.openStreams.size()).toBe(0);
	const late = setUp(10_000);
	late.next[0]?.resolve(CHUNK);
	const reader = (await late.answer).body?.getReader();
	await reader?.read();
	await waitFor(() => late.next.length === 2, "the next read");
	late.next[1]?.reject(new UpstreamFailure("died", { private: "" }));
	await reader?.read();
	expect(late.timeouts.at(-1)).toBe(IDLE_TIMEOUT_S);
	expect(late.outcomes).toEqual(["upstream_died"]);
});

test("a hold that is longer than the stream's own limit does not cut the waiting client", async () => {
	const { clock, timeouts, next, answer } = setUp(300_000);
	expect(timeouts).toEqual([0]);
	clock.advance(300_000);
	const reader = readerOf(await answer);
	expect((await reader.read()).value).toBe(": \n\n");
	expect(timeouts).toEqual([0, STREAM_TIMEOUT_S]);
	next[0]?.resolve(CHUNK);
	expect((await reader.read()).value).toContain('"content":"a"');
});

test("a stop while the status is held back settles the request and gives it a status of its own", async () => {
	const { answer, outcomes, openStreams, next } = setUp(10_000);
	openStreams.shutDown();
	next[0]?.reject(new UpstreamFailure("aborted", { private: "" }));
	await expect(answer).rejects.toMatchObject({ code: "service_unavailable", retryAfterS: 1 });
	expect(outcomes).toEqual(["shutdown"]);
	expect(openStreams.size()).toBe(0);
});
