/** Deadlines of a call, clients that disconnect, and the outcome that the circuit breaker records. */
import { expect, test } from "bun:test";
import { UpstreamFailure } from "../../src/upstream/call/failure.ts";
import { CallGuard, createOpenCalls } from "../../src/upstream/call/guard.ts";
import { askChat, chatCall, limitsWith, openChat } from "../support/upstream-catalog.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { UPSTREAM_SPEC, until, upstreamsOver } from "../support/upstream-set.ts";

type Asked = { url: string; signal: AbortSignal; answer: PromiseWithResolvers<Response> };

/** Two replicas that answer on demand, with a manual clock. */
function setUp(more: Parameters<typeof limitsWith>[0]) {
	const clock = createManualClock();
	const asked: Asked[] = [];
	const fetch = (url: string, { method, signal }: BunFetchRequestInit): Promise<Response> => {
		if (method !== "POST" || !signal) return Promise.resolve(new Response("{}"));
		const answer = Promise.withResolvers<Response>();
		signal.addEventListener("abort", () => answer.reject(signal.reason));
		asked.push({ url, signal, answer });
		return answer.promise;
	};
	const specs = [UPSTREAM_SPEC, { ...UPSTREAM_SPEC, url: "http://127.0.0.1:10/v1" }];
	return { clock, asked, ...upstreamsOver(specs, { clock, fetch, limits: more }) };
}

test("the total deadline covers all attempts of a request", async () => {
	const { clock, asked, upstreams, model } = setUp({ totalMs: 1_000 });
	const outcome = askChat(upstreams, model, chatCall()).catch((error) => error);
	await until(() => asked.length === 1);
	clock.advance(700);
	asked[0]?.answer.resolve(new Response("", { status: 500 }));
	await until(() => asked.length === 2);
	clock.advance(299);
	expect(asked[1]?.signal.aborted).toBe(false);
	clock.advance(2);
	expect(await outcome).toMatchObject({ kind: "timeout", private: "total deadline" });
});

test("a request whose client disconnected is not sent again", async () => {
	const { asked, upstreams, model } = setUp({});
	const leaving = new AbortController();
	const outcome = askChat(upstreams, model, chatCall({ signal: leaving.signal })).catch((error) => error);
	await until(() => asked.length === 1);
	asked[0]?.answer.resolve(new Response("", { status: 500 }));
	leaving.abort();
	// Records the failure of the first attempt, because the second never began.
	expect(await outcome).toMatchObject({ kind: "failed", status: 500 });
	expect(asked).toHaveLength(1);
});

test("comments in a stream do not extend the deadline of the first event", async () => {
	const { clock, asked, upstreams, model } = setUp({ firstEventMs: 1_000 });
	const stream = openChat(upstreams, model, chatCall());
	const outcome = stream.next().catch((error) => error);
	await until(() => asked.length === 1);
	const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
	const body = writable.getWriter();
	asked[0]?.signal.addEventListener("abort", () => void body.abort(new Error("hung up")));
	asked[0]?.answer.resolve(new Response(readable, { headers: { "content-type": "text/event-stream" } }));
	for (let nth = 0; nth < 9; nth += 1) {
		// Lets the gateway read the comment before the clock advances.
		await body.write(new TextEncoder().encode(": still at work\n\n"));
		await new Promise(setImmediate);
		clock.advance(100);
	}
	expect(asked[0]?.signal.aborted).toBe(false);
	clock.advance(101);
	expect(await outcome).toMatchObject({ kind: "timeout", private: "first event deadline" });
});

test("each kind of failure counts for the breaker as listed", () => {
	const clock = createManualClock();
	const guard = new CallGuard(
		{ clock, openCalls: createOpenCalls(clock) },
		{ limits: limitsWith({}), startedMs: clock.monotonicMs(), clientSignal: undefined, isReachable: async () => true },
	);
	const refusedBy = (code: string) => Object.assign(new Error("connect"), { code });
	const said = (kind: UpstreamFailure["kind"], more: { status?: number; cause?: unknown } = {}) =>
		`${guard.outcomeOf(new UpstreamFailure(kind, { private: "", ...more }))}: ${kind} ${more.status ?? ""}`.trim();
	expect([
		said("aborted"),
		said("yielded"),
		said("rejected", { status: 400 }),
		said("context_length", { status: 400 }),
		said("busy", { status: 429 }),
		said("busy", { status: 503 }),
		said("failed", { status: 500 }),
		said("died"),
		said("unreadable"),
		said("unreachable", { cause: refusedBy("ECONNRESET") }),
		said("unreachable", { cause: refusedBy("ConnectionRefused") }),
	]).toEqual([
		"neutral: aborted",
		"neutral: yielded",
		"neutral: rejected 400",
		"neutral: context_length 400",
		"neutral: busy 429",
		"suspect: busy 503",
		"suspect: failed 500",
		"suspect: died",
		"suspect: unreadable",
		"suspect: unreachable",
		"failed: unreachable",
	]);
});
