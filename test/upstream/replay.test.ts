/** Which failed calls are repeated on another replica, and their effect on the replicas' circuit breakers. */
import { describe, expect, test } from "bun:test";
import type { UpstreamFailure } from "../../src/upstream/call/failure.ts";
import { askChat, chatCall, collect, openChat } from "../support/upstream-catalog.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import type { Reply } from "../support/upstream-reply.ts";
import { reply, startUpstream, withUpstream } from "../support/upstream-server.ts";
import { openUpstreams, until, upstreamsOver } from "../support/upstream-set.ts";

const FAILURES: Record<string, () => Reply> = {
	"a reset before the headers": () => reply().reset(),
	"status 500": () => reply().errorStatus(500),
	"status 429": () => reply().errorStatus(429),
	"status 503": () => reply().errorStatus(503),
	"refused credentials": () => reply().errorStatus(401, { error: "Unauthorized" }),
	"a redirect": () => reply().errorStatus(307, "", { location: "http://127.0.0.1:9/" }),
	"an error event before the first token": () => reply().errorEvent(),
	"an end before the first token": () => reply().text("a b").endAfter(0),
	"an engine abort": () => reply().text([]).finish("abort"),
	"an answer that is no JSON": () => reply().raw("<html>", "application/json"),
	"an error with status 200": () => reply().raw('{"error":{"message":"x"}}', "application/json"),
};

const openAndCollect = (...args: Parameters<typeof openChat>) => collect(openChat(...args));

describe("a request is sent to another replica", () => {
	test.each(Object.keys(FAILURES))("after %s, streamed or not", async (name) => {
		const bad = FAILURES[name] as () => Reply;
		const streamed = openUpstreams(2);
		streamed.firstFails(bad);
		const stream = openChat(streamed.upstreams, streamed.model, chatCall());
		const got = await collect(stream);
		expect(got.error).toBeUndefined();
		expect(got.text).toEqual(["fine"]);
		expect(streamed.servers.map((server) => server.requests.length)).toEqual([1, 1]);
		expect(stream.usage()?.completionTokens).toBe(1);

		const whole = openUpstreams(2);
		whole.firstFails(bad);
		// Only a stream can end before its first token.
		if (name === "an end before the first token") return;
		const { reply: answer } = await askChat(whole.upstreams, whole.model, chatCall());
		expect(answer.choices[0]?.message.content).toBe("fine");
		expect(whole.servers.map((server) => server.requests.length)).toEqual([1, 1]);
		expect(whole.upstreams.replicas().map((replica) => replica.inFlight)).toEqual([0, 0]);
	});

	test("only if it has an output limit", async () => {
		const message = "The maximum context length is 8 tokens; you requested 9 output tokens.";
		for (const ask of [openAndCollect, askChat]) {
			const { upstreams, model, servers } = openUpstreams(2);
			const refusal = () => reply().errorStatus(400, { error: { message } });
			for (const server of servers)
				server.decide((body) => ("max_tokens" in body ? refusal() : reply().errorStatus(500)));
			await ask(upstreams, model, chatCall()).catch(() => {});
			const sent = servers.map(({ requests }) => requests.map(({ body }) => "max_tokens" in body));
			expect(sent.toSorted((one, other) => one.length - other.length)).toEqual([[], [true, false]]);
		}
	});

	test.each(["long", "short"])("with the same %s prompt, streamed or not", async (length) => {
		const content = `"zwei"\\n\n – 三 `.repeat(length === "long" ? 20_000 : 2);
		for (const ask of [openAndCollect, askChat]) {
			const { upstreams, model, servers, firstFails } = openUpstreams(3);
			firstFails(() => reply().errorStatus(500));
			await ask(upstreams, model, chatCall({ prompt: [{ role: "user", content }], fields: { stop: ["x"] } }));
			const bodies = servers.flatMap(({ requests }) => requests.map(({ body }) => body));
			expect(bodies).toHaveLength(2);
			for (const body of bodies) expect(body).toMatchObject({ messages: [{ role: "user", content }], stop: ["x"] });
		}
	});

	test("if the address of the first replica refuses connections", async () => {
		const { servers, read } = openUpstreams(2);
		await servers[0]?.stop();
		for (let call = 0; call < 4; call += 1) expect((await read()).error).toBeUndefined();
	});

	test("at most three times once a replica has accepted it", async () => {
		const { servers, requests, read } = openUpstreams(5);
		for (const server of servers) server.always(() => reply().reset());
		expect((await read()).error).toMatchObject({ kind: "unreachable" });
		expect(requests()).toBe(3);
		expect(Math.max(...servers.map((server) => server.requests.length))).toBe(1);
	});

	test.each(["429", "503", "401", "refused"])("until a replica does not refuse it (%s)", async (how) => {
		const { upstreams, servers, ask } = openUpstreams(5, { breakerFailuresInRow: 100, healthIntervalMs: 60_000 });
		await until(() => upstreams.replicas().every(({ health }) => health === "up"));
		for (const server of servers.slice(1)) {
			if (how === "refused") await server.stop();
			else server.always(() => reply().errorStatus(Number(how)));
		}
		// Each of these calls tries the failed replica first.
		for (let call = 0; call < 5; call += 1) await ask();
		expect(servers[0]?.requests).toHaveLength(5);
	});

	test("even if its breaker is open, when no other replica is left", async () => {
		const clock = createManualClock();
		const servers = [withUpstream(), withUpstream()] as const;
		const limits = { breakerFailuresInRow: 1, breakerCoolMs: 60_000, breakerCoolMsMax: 60_000 };
		const { upstreams, model } = upstreamsOver(
			servers.map((server) => server.spec()),
			{ clock, limits },
		);
		await until(() => upstreams.replicas().every(({ health }) => health === "up"));
		const ask = (accountId: string) => askChat(upstreams, model, chatCall({ accountId }));
		// One replica fails at a time; `bad.at` is its index.
		const bad = { at: 0 };
		for (const [at, server] of servers.entries())
			server.decide(() => (bad.at === at ? reply().errorStatus(500) : reply()));
		for (const accountId of ["a", "b"]) await ask(accountId);
		expect(upstreams.replicas().map(({ breaker }) => breaker)).toEqual(["open", "closed"]);
		bad.at = 1;
		clock.advance(1_000);
		await ask("a");
		expect(servers.map((server) => server.requests.length)).toEqual([2, 3]);
		expect(upstreams.replicas()[0]?.breaker).toBe("closed");
	});

	test("at most eight times in total", async () => {
		const { servers, requests, read } = openUpstreams(10);
		for (const server of servers) server.always(() => reply().errorStatus(429));
		expect((await read()).error).toMatchObject({ kind: "busy", status: 429 });
		expect(requests()).toBe(8);
	});
});

describe("a request is not sent again", () => {
	test.each([
		[400, "rejected", "temperature"],
		[422, "rejected", "temperature"],
	] as const)("after status %d (`%s` with its field)", async (status, kind, param) => {
		const { upstreams, servers, requests, read, ask } = openUpstreams(2);
		for (const server of servers)
			server.always(() => reply().errorStatus(status, { error: { message: "no", param: "temperature" } }));
		expect((await read()).error).toMatchObject({ kind, param, status });
		await expect(ask()).rejects.toMatchObject({ kind, param });
		expect(requests()).toBe(2);
		expect(upstreams.replicas().map((replica) => replica.breaker)).toEqual(["closed", "closed"]);
	});

	test("after the first chunk has reached the client", async () => {
		const { requests, firstFails, read } = openUpstreams(2);
		firstFails(() => reply().text("a b c").trickle(2).dieAfter(2));
		const got = await read();
		expect(got.text).toEqual(["a b"]);
		expect(got.error).toMatchObject({ kind: "died" });
		expect(requests()).toBe(1);
	});

	test("to the address in a redirect", async () => {
		const { servers, read, ask } = openUpstreams(1, {}, [{ apiKey: "upstream-key" }]);
		const elsewhere = withUpstream();
		servers[0]?.always(() => reply().errorStatus(307, "", { location: `${elsewhere.url}/chat/completions` }));
		expect((await read()).error).toMatchObject({ kind: "misconfigured", status: 307 });
		await expect(ask()).rejects.toMatchObject({ kind: "misconfigured" });
		expect(elsewhere.requests).toHaveLength(0);
	});

	test("after its client has disconnected", async () => {
		const { upstreams, model, servers, requests } = openUpstreams(2);
		for (const server of servers) server.always(() => reply().hang());
		const leave = new AbortController();
		const stream = openChat(upstreams, model, chatCall({ signal: leave.signal }));
		const outcome = collect(stream);
		await Promise.race(servers.map((server) => server.waitForRequest(1).catch(() => new Promise(() => {}))));
		leave.abort();
		expect((await outcome).error).toMatchObject({ kind: "aborted" });
		expect(requests()).toBe(1);
	});

	test("if its client disconnects before the first call", async () => {
		const { requests, read } = openUpstreams(1);
		const got = await read({ signal: AbortSignal.abort() });
		expect(got.error).toMatchObject({ kind: "aborted" });
		expect(requests()).toBe(0);
	});
});

describe("a call to an address that does not answer", () => {
	/** Simulates dropped packets, after which Bun tries to connect for minutes. */
	const connecting = (_url: string, init: BunFetchRequestInit) =>
		new Promise<Response>((_, reject) => init.signal?.addEventListener("abort", () => reject(init.signal?.reason)));

	test.each(["streamed", "whole"])("fails after the connect deadline (%s)", async (how) => {
		const server = startUpstream();
		await server.stop();
		const { upstreams, model } = upstreamsOver([server.spec()], { fetch: connecting, limits: { connectMs: 300 } });
		const call = () =>
			how === "whole" ? askChat(upstreams, model, chatCall()) : openChat(upstreams, model, chatCall()).next();
		await expect(call()).rejects.toMatchObject({ kind: "unreachable", private: "connect deadline" });
	});

	test("waits beyond the connect deadline if the address accepts connections", async () => {
		const limits = { connectMs: 100, totalMs: 600, firstEventMs: 600 };
		const server = withUpstream();
		const { upstreams, model } = upstreamsOver([server.spec()], { fetch: connecting, limits });
		await expect(askChat(upstreams, model, chatCall())).rejects.toMatchObject({ kind: "timeout" });
	});
});

describe("the only replica of a model", () => {
	test("gets the request again on a new connection after a reset", async () => {
		const { servers, firstFails, ask } = openUpstreams(1);
		firstFails(() => reply().reset());
		expect((await ask()).reply.choices).toHaveLength(1);
		expect(servers[0]?.requests).toHaveLength(2);
		expect(servers[0]?.requests.map((request) => request.headers.get("connection"))).toEqual(["keep-alive", null]);
	});

	test("gets the request at most twice", async () => {
		const { servers, requests, ask } = openUpstreams(1);
		servers[0]?.always(() => reply().reset());
		await expect(ask()).rejects.toMatchObject({ kind: "unreachable" });
		expect(requests()).toBe(2);
		servers[0]?.always(() => reply().errorStatus(500));
		await expect(ask()).rejects.toMatchObject({ kind: "failed" });
		expect(requests()).toBe(3);
		await servers[0]?.stop();
		await expect(ask()).rejects.toMatchObject({ kind: "unreachable" });
	});

	test("gets no requests for a while if it keeps failing", async () => {
		const { upstreams, model, servers, requests } = openUpstreams(1, {
			breakerFailuresInRow: 3,
			breakerCoolMs: 60_000,
		});
		servers[0]?.always(() => reply().errorStatus(500));
		for (const accountId of ["a", "b", "a"]) await collect(openChat(upstreams, model, chatCall({ accountId })));
		expect(upstreams.replicas()[0]?.breaker).toBe("open");
		expect(upstreams.connected("test-model")).toBe(false);
		const errorOf = async (accountId: string) =>
			(await collect(openChat(upstreams, model, chatCall({ accountId })))).error;
		const refusal = { name: "Fault", code: "service_unavailable", retryAfterS: 60 };
		for (const accountId of ["a", "b"]) expect(await errorOf(accountId)).toMatchObject(refusal);
		expect(requests()).toBe(3);
		// The next requests are trial calls to a replica whose health check succeeds.
		for (const accountId of ["c", "d", "e"]) expect(await errorOf(accountId)).toMatchObject({ kind: "failed" });
		for (const accountId of ["a", "c", "e"])
			expect(await errorOf(accountId)).toMatchObject({ code: "service_unavailable" });
		expect(requests()).toBe(6);
	});
});

describe("a request on which several replicas fail", () => {
	const POISON = "poison";
	const poisonous = [
		["a status", () => reply().errorStatus(500)],
		["an empty answer", () => reply().raw("")],
		["an error event", () => reply().errorEvent()],
		["a broken connection after the headers", () => reply().text("a").endAfter(0)],
	] as const;

	function serve(count: number, bad: () => Reply, breakerFailuresInRow = 2) {
		const { upstreams, model, servers, requests } = openUpstreams(count, { breakerFailuresInRow });
		for (const server of servers) server.decide((body) => (JSON.stringify(body).includes(POISON) ? bad() : reply()));
		const ask = async (text: string, accountId: string) =>
			(await collect(openChat(upstreams, model, chatCall({ prompt: [{ role: "user", content: text }], accountId }))))
				.error;
		return { upstreams, requests, ask };
	}

	test.each(poisonous)("is blamed if two replicas fail on it twice (%s)", async (_, bad) => {
		const { upstreams, requests, ask } = serve(3, bad);
		for (let round = 0; round < 8; round += 1) {
			const kind = round === 0 ? expect.stringMatching(/^(failed|died|unreadable)$/) : "unanswerable";
			expect(await ask(POISON, "bad")).toMatchObject({ kind });
			for (let other = 0; other < 3; other += 1) expect(await ask("fine", "good")).toBeUndefined();
		}
		expect(requests()).toBe(8 * (2 + 3));
		expect(upstreams.replicas().map(({ breaker }) => breaker)).toEqual(["closed", "closed", "closed"]);
	});

	test("does not close the replicas to its account", async () => {
		const { upstreams, ask } = serve(2, () => reply().errorStatus(500), 1);
		for (let round = 0; round < 4; round += 1) {
			expect(await ask(POISON, "bad")).toMatchObject({ kind: round === 0 ? "failed" : "unanswerable" });
			for (const _ of [1, 2]) expect(await ask("fine", "bad")).toBeUndefined();
		}
		expect(upstreams.replicas().map(({ breaker }) => breaker)).toEqual(["closed", "closed"]);
	});

	test("gets a busy server's error rather than that of a server that refuses the key", async () => {
		const { upstreams, model, servers } = openUpstreams(2);
		const fails = [() => reply().errorStatus(429), () => reply().errorStatus(401)] as const;
		for (const order of [fails, fails.toReversed()]) {
			for (const [at, server] of servers.entries()) server.always(order[at] as () => Reply);
			expect((await collect(openChat(upstreams, model, chatCall()))).error).toMatchObject({ kind: "busy" });
		}
	});

	test("is not blamed if the replicas fail on every request", async () => {
		const { upstreams, model, servers } = openUpstreams(2, { breakerFailuresInRow: 100 });
		for (const server of servers) server.always(() => reply().errorStatus(500));
		const errors = [];
		for (const accountId of ["a", "b", "a", "c"])
			errors.push((await collect(openChat(upstreams, model, chatCall({ accountId })))).error);
		// Whether the request or the server is to blame for the first failure is not known yet.
		expect(errors.slice(1).map((error) => (error as UpstreamFailure).kind)).toEqual(["failed", "failed", "failed"]);
	});

	test("opens the breaker of a failed replica if another replica answers the request", async () => {
		const { upstreams, servers, read } = openUpstreams(2, { breakerFailuresInRow: 3 });
		servers[0]?.always(() => reply().errorStatus(500));
		for (let call = 0; call < 12; call += 1) {
			expect((await read()).error).toBeUndefined();
		}
		expect(upstreams.replicas().map(({ breaker }) => breaker)).toEqual(["open", "closed"]);
	});
});
