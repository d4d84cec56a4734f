/**
 * Events between a request and its sending at the end of the event-loop turn, and between an answer's headers and body.
 */
import { describe, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { createTickBarrier, nextTurn } from "../../src/base/time-slice.ts";
import type { CallContext } from "../../src/upstream/call/attempt.ts";
import type { FetchFunction } from "../../src/upstream/call/post.ts";
import type { CountedReply, UnaryCall } from "../../src/upstream/call/unary.ts";
import { createUpstreams } from "../../src/upstream/upstreams.ts";
import { askChat, chatCall, limitsWith, modelOver, openChat, snapshotOf } from "../support/upstream-catalog.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { UPSTREAM_SPEC } from "../support/upstream-set.ts";
import { waitFor } from "../support/wait.ts";

const tickBarrier = createTickBarrier();
const TOTAL_MS = 50;
/** Requests with at most this many characters are sent together at the end of the event-loop turn. */
const TOGETHER = 256 * 1024;
const model = modelOver([{ ...UPSTREAM_SPEC, dialect: "vllm", maxConcurrency: 1 }]);
const roomy = modelOver([{ ...UPSTREAM_SPEC, dialect: "vllm", maxConcurrency: 8 }], { id: "roomy" });

/** A server whose answers the test sets. A request is listed once it has been passed to Bun's `fetch`. */
function setUp() {
	const clock = createManualClock();
	const sent: { body: unknown; answer: (text: string) => void }[] = [];
	const read: string[] = [];
	const fetch: FetchFunction = (_, { method, body, signal }) => {
		if (method !== "POST") return Promise.resolve(new Response("{}"));
		const { promise, resolve, reject } = Promise.withResolvers<Response>();
		if (signal?.aborted) reject(signal.reason);
		signal?.addEventListener("abort", () => reject(signal.reason));
		const answer = (text: string) => {
			const response = new Response(text, { headers: { "content-length": String(text.length) } });
			const take = response.text.bind(response);
			resolve(
				Object.assign(response, {
					text: () => {
						read.push(text);
						return take();
					},
				}),
			);
		};
		sent.push({ body, answer });
		return promise;
	};
	const limits = limitsWith({ totalMs: TOTAL_MS, queueLengthMax: 10, queueWaitMs: 1_000_000 });
	const upstreams = createUpstreams({ clock, log: silentLog, fetch }, { limits: () => limits });
	upstreams.sync(snapshotOf(model, roomy));
	const calls = { made: 0, ended: 0 };
	const trace: CallContext["trace"] = {
		admitted() {},
		answered() {},
		call() {
			calls.made += 1;
			const end = () => {
				calls.ended += 1;
			};
			return { headers: { traceparent: "00-0-0-01" }, end };
		},
	};
	const leaving = new AbortController();
	const context = (more: Partial<CallContext> = {}) => chatCall({ signal: leaving.signal, trace, ...more });
	const inFlight = () => upstreams.replicas().reduce((sum, replica) => sum + replica.inFlight, 0);
	return { clock, upstreams, sent, read, calls, context, leave: () => leaving.abort(), inFlight };
}

const posted = (body: string | FormData, context: CallContext): UnaryCall<CountedReply> => ({
	context,
	run: (ask) => ask.post({ path: "/any", body, read: (answer) => answer as CountedReply }),
});

test("small requests are sent at the end of the event-loop turn, large ones at once", async () => {
	const { upstreams, sent, context } = setUp();
	for (const turn of ["first", "second"]) {
		const small = turn.padEnd(TOGETHER);
		const ends = nextTurn();
		const ask = (body: string | FormData) => upstreams.call(roomy, posted(body, context()));
		const asked = [ask(small), ask(turn)];
		await ends;
		expect(sent.splice(0)).toEqual([]);
		await tickBarrier();
		const together = sent.splice(0);
		expect(together.map(({ body }) => body)).toEqual([small, turn]);
		const atOnce = [turn.padEnd(TOGETHER + 1), new FormData()];
		asked.push(...atOnce.map(ask));
		const alone = sent.splice(0);
		expect(alone.map(({ body }) => body)).toEqual(atOnce);
		for (const { answer } of [...together, ...alone]) answer("1");
		await Promise.all(asked);
	}
});

test("all answers that arrive in one event-loop turn are read at its end", async () => {
	const { upstreams, sent, read, context } = setUp();
	const asked = ["a", "b"].map((body) => upstreams.call(roomy, posted(body, context())));
	await tickBarrier();
	const ends = nextTurn();
	for (const [nth, { answer }] of sent.entries()) answer(String(nth));
	await ends;
	expect(read).toEqual([]);
	await tickBarrier();
	expect(read).toEqual(["0", "1"]);
	await Promise.all(asked);
});

describe("a call that ends before its request is sent frees its place", () => {
	type Made = ReturnType<typeof setUp>;
	const whole = ({ upstreams, context }: Made) => askChat(upstreams, model, context());
	const streamed = ({ upstreams, context }: Made) => openChat(upstreams, model, context());
	const failure = (answer: Promise<unknown>) => answer.then(undefined, (error: unknown) => error);

	test("for an unstreamed answer whose client disconnected", async () => {
		const made = setUp();
		const answer = whole(made);
		expect(made.inFlight()).toBe(1);
		made.leave();
		expect(await failure(answer)).toMatchObject({ kind: "aborted" });
		expect([made.sent.length, made.calls.made, made.inFlight()]).toEqual([0, 0, 0]);
	});

	test.each([
		["whose client left", ({ leave }: Made) => leave(), "aborted"],
		["that was closed", (_: Made, close: () => void) => close(), "aborted"],
		["whose deadline passed", ({ clock }: Made) => clock.advance(TOTAL_MS), "timeout"],
	] as const)("for a stream %s", async (_, end, kind) => {
		const made = setUp();
		const stream = streamed(made);
		expect(made.inFlight()).toBe(1);
		end(made, () => stream.close());
		expect(await failure(stream.next())).toMatchObject({ kind });
		expect([made.sent.length, made.calls.made, made.inFlight()]).toEqual([0, 0, 0]);
	});

	test("for a batch line that yields its place", async () => {
		const made = setUp();
		const { upstreams, sent, context } = made;
		const ask = (body: string, more?: Partial<CallContext>) => upstreams.call(model, posted(body, context(more)));
		const line = ask("line", { patient: true, accountId: "batch" });
		const request = ask("request");
		await waitFor(() => sent.length === 1, "one to be sent");
		expect(sent[0]?.body).toBe("request");
		expect([made.calls.made, made.inFlight()]).toEqual([1, 1]);
		sent[0]?.answer("1");
		await request;
		await waitFor(() => sent.length === 2, "the line to be sent");
		expect(sent[1]?.body).toBe("line");
		sent[1]?.answer("2");
		expect(await line).toMatchObject({ reply: 2 });
		expect([made.calls.made, made.calls.ended, made.inFlight()]).toEqual([2, 2, 0]);
	});
});
