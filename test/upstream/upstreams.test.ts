import { describe, expect, spyOn, test } from "bun:test";
import { unstreamedCompletion } from "../../src/upstream/completions.ts";
import { Prompt } from "../../src/upstream/prompt.ts";
import { localServer } from "../support/at-end.ts";
import { askChat, chatCall, collect, openChat, snapshotOf } from "../support/upstream-catalog.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";
import { openUpstreams, UPSTREAM_SPEC, until, upstreamsOver } from "../support/upstream-set.ts";

describe("calls to model servers", () => {
	test("never exceed the places of a replica", async () => {
		const { upstreams, model, servers } = openUpstreams(1, {}, [{ maxConcurrency: 2 }]);
		let most = 0;
		servers[0]?.always(() => {
			most = Math.max(most, servers[0]?.open() ?? 0);
			return reply().text("a b c").trickle(2);
		});
		const all = await Promise.all(Array.from({ length: 12 }, () => collect(openChat(upstreams, model, chatCall()))));
		expect(all.every((got) => got.error === undefined)).toBe(true);
		expect(most).toBeLessThanOrEqual(2);
		expect(upstreams.replicas()[0]?.inFlight).toBe(0);
	});

	test("reuse the connection of a finished stream", async () => {
		const ports = new Set<number>();
		const server = localServer((request, bun) => {
			ports.add(bun.requestIP(request)?.port ?? 0);
			const event = { choices: [{ index: 0, delta: { content: "x" }, finish_reason: "stop" }] };
			async function* body() {
				yield `data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`;
				// Most servers send the end of the body in a packet after the end marker.
				await Bun.sleep(5);
			}
			return new Response(body() as unknown as ReadableStream, { headers: { "content-type": "text/event-stream" } });
		});
		const { upstreams, model } = upstreamsOver([{ ...UPSTREAM_SPEC, url: `http://127.0.0.1:${server.port}/v1` }]);
		ports.clear();
		for (let call = 0; call < 20; call += 1) {
			const stream = openChat(upstreams, model, chatCall());
			expect((await collect(stream)).error).toBeUndefined();
			expect(stream.usage()).toBeUndefined();
			await Bun.sleep(10);
		}
		// All calls share a connection; the health checks have their own.
		expect(ports.size).toBeLessThanOrEqual(3);
	});

	test("end the connection of a server that sends data after the end marker", async () => {
		const event = { choices: [{ index: 0, delta: { content: "x" }, finish_reason: "stop" }] };
		const hungUp = Promise.withResolvers<void>();
		const server = localServer((request) => {
			request.signal.addEventListener("abort", () => hungUp.resolve());
			async function* body() {
				yield `data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`;
				for (;;) {
					await Bun.sleep(5);
					yield ": and another thing\n\n";
				}
			}
			return new Response(body() as unknown as ReadableStream, { headers: { "content-type": "text/event-stream" } });
		});
		const { upstreams, model } = upstreamsOver([{ ...UPSTREAM_SPEC, url: `http://127.0.0.1:${server.port}/v1` }]);
		expect((await collect(openChat(upstreams, model, chatCall()))).error).toBeUndefined();
		expect(upstreams.replicas()[0]?.inFlight).toBe(0);
		await hungUp.promise;
	});

	test("leave no place occupied, no timer and no listener after their end", async () => {
		const clock = createManualClock();
		const server = withUpstream();
		const { upstreams, model } = upstreamsOver([server.spec()], { clock });
		await until(() => upstreams.replicas()[0]?.health === "up" && clock.pending() === 1);
		server.next(
			reply(),
			reply(),
			reply().errorStatus(500),
			reply().text("a b").dieAfter(1),
			reply().text("a b").stallAfter(1),
		);
		const leave = new AbortController();
		let listeners = 0;
		const { signal } = leave;
		const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
		signal.addEventListener = (...args: Parameters<typeof add>) => {
			listeners += 1;
			add(...args);
		};
		signal.removeEventListener = (...args: Parameters<typeof remove>) => {
			listeners -= 1;
			remove(...args);
		};
		const call = () => chatCall({ signal });
		await askChat(upstreams, model, call());
		for (let ending = 0; ending < 3; ending += 1) await collect(openChat(upstreams, model, call()));
		const stalled = openChat(upstreams, model, call());
		await stalled.next();
		stalled.close();
		// The one remaining timer is the one that polls for long calls.
		clock.advance(100);
		await until(() => clock.pending() === 1);
		expect(listeners).toBe(0);
		expect(upstreams.replicas()[0]?.inFlight).toBe(0);
		expect(server.requests).toHaveLength(5);
	});

	test("to llama.cpp send one request per choice, each with its own seed", async () => {
		const { upstreams, model, servers } = openUpstreams(1, {}, [{ dialect: "llama.cpp" }]);
		servers[0]?.always(() => reply().text("a b").usage({ prompt: 3, completion: 2 }));
		const { reply: got } = await askChat(upstreams, model, chatCall({ choices: 2, fields: { seed: 7 } }));
		expect(got.choices.map(({ index, message }) => [index, message.content])).toEqual([
			[0, "a b"],
			[1, "a b"],
		]);
		expect(got.usage).toMatchObject({ promptTokens: 3, completionTokens: 4 });
		expect(servers[0]?.requests.map(({ body }) => body)).toMatchObject([{ seed: 7 }, { seed: 8 }]);
	});

	test("to llama.cpp free the prompt of each choice of a completion", async () => {
		let status = 200;
		const choice = { index: 0, text: "x", finish_reason: "stop" };
		const fetch = async () => Response.json({ choices: [choice] }, { status });
		const { upstreams, model } = upstreamsOver([{ ...UPSTREAM_SPEC, dialect: "llama.cpp" }], { fetch });
		const prompt = () => new Prompt(["a", "b"].map((letter) => letter.repeat(20_000)));
		const [kept, freed] = [spyOn(FormData.prototype, "append"), spyOn(FormData.prototype, "delete")];
		const ask = () => {
			const input = { fields: {}, prompt: prompt(), maxOutputTokens: 9, shape: { prompts: 2, n: 2 } };
			return upstreams.call(model, unstreamedCompletion(model, chatCall(), input));
		};
		expect((await ask()).reply.choices.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
		status = 400;
		await expect(ask()).rejects.toMatchObject({ kind: "rejected" });
		const counts = [kept.mock.calls.length, freed.mock.calls.length];
		kept.mockRestore();
		freed.mockRestore();
		expect(counts).toEqual([5, 5]);
	});

	test("to llama.cpp require every choice and the usage of each choice", async () => {
		const { upstreams, model, servers } = openUpstreams(1, {}, [{ dialect: "llama.cpp" }]);
		const counted = reply().text("a b").usage({ prompt: 3, completion: 2 });
		servers[0]?.next(counted, reply().errorStatus(500));
		await expect(askChat(upstreams, model, chatCall({ choices: 2 }))).rejects.toMatchObject({ kind: "failed" });
		expect(upstreams.replicas()[0]?.inFlight).toBe(0);
		servers[0]?.next(counted, reply().text("c d").usage(null));
		const { reply: got } = await askChat(upstreams, model, chatCall({ choices: 2 }));
		expect([got.usage, got.outputBytes]).toEqual([undefined, 6]);
	});

	test("to llama.cpp end with the choice during which the client disconnects", async () => {
		const { upstreams, model, servers } = openUpstreams(1, {}, [{ dialect: "llama.cpp" }]);
		const leave = new AbortController();
		servers[0]?.always(() => {
			leave.abort();
			return reply().text("a b").usage({ prompt: 3, completion: 2 });
		});
		const call = askChat(upstreams, model, chatCall({ choices: 3, signal: leave.signal }));
		await expect(call).rejects.toMatchObject({ kind: "aborted" });
		expect([servers[0]?.requests.length, upstreams.replicas()[0]?.inFlight]).toEqual([1, 0]);
	});

	test("are not ended as silent while the reader of the stream pauses", async () => {
		const { upstreams, model, servers } = openUpstreams(1, { silenceMs: 400 });
		servers[0]?.next(reply().text("a b c").trickle(20));
		const stream = openChat(upstreams, model, chatCall());
		await stream.next();
		await Bun.sleep(600);
		const rest = await collect(stream);
		expect(rest.error).toBeUndefined();
		expect(rest.finish).toEqual(["stop"]);
	});

	test("end at the total deadline without blaming the replica", async () => {
		const { upstreams, model, servers } = openUpstreams(1, { totalMs: 600, breakerFailuresInRow: 1 });
		servers[0]?.always(() => reply().text("x ".repeat(1000)).trickle(5));
		const got = await collect(openChat(upstreams, model, chatCall()));
		expect(got.error).toMatchObject({ kind: "timeout", private: "total deadline" });
		expect(got.chunks.length).toBeGreaterThan(3);
		await servers[0]?.waitForAbort(1);
		expect(upstreams.replicas()[0]?.breaker).toBe("closed");
		servers[0]?.always(() => reply().hang());
		await expect(askChat(upstreams, model, chatCall())).rejects.toMatchObject({ kind: "timeout" });
		await servers[0]?.waitForAbort(2);
	});
});

describe("a catalogue change", () => {
	test("keeps the load of remaining replicas and drains removed ones", async () => {
		const { upstreams, model, servers } = openUpstreams(2);
		const [a, b] = servers as [(typeof servers)[0], (typeof servers)[0]];
		a.always(() => reply().text("x ".repeat(100)).trickle(2));
		b.always(() => reply().text("b"));
		const onA = [1, 2].map(() => openChat(upstreams, model, chatCall()));
		await a.waitForRequest(1);
		const slow = onA.find((stream) => stream.replica() === "test-model#0");
		const changed = { ...model, upstreams: [b.spec({ maxConcurrency: 3 })] };
		upstreams.sync(snapshotOf(changed));
		expect(upstreams.replicas().map(({ alias, maxConcurrency }) => [alias, maxConcurrency])).toEqual([
			["test-model#1", 3],
		]);
		const before = a.requests.length;
		for (let call = 0; call < 5; call += 1) await askChat(upstreams, changed, chatCall());
		expect(a.requests.length).toBe(before);
		expect((await collect(slow as NonNullable<typeof slow>)).error).toBeUndefined();
		upstreams.sync(snapshotOf());
		expect(upstreams.connected("test-model")).toBe(false);
		expect(() => openChat(upstreams, changed, chatCall())).toThrow(
			expect.objectContaining({ code: "service_unavailable" }),
		);
	});

	test("gives no extra places to a server that is removed and added again", async () => {
		const { upstreams, model, servers } = openUpstreams(2, { accountShare: 1 }, [
			{ maxConcurrency: 2 },
			{ maxConcurrency: 2 },
		]);
		const [a, b] = servers as [(typeof servers)[0], (typeof servers)[0]];
		const withoutA = { ...model, upstreams: [b.spec({ maxConcurrency: 2 })] };
		let most = 0;
		for (const server of servers) {
			server.always(() => {
				most = Math.max(most, server.open());
				return reply().text("x ".repeat(40)).trickle(5);
			});
		}
		const ask = (many: number) =>
			Array.from({ length: many }, () => collect(openChat(upstreams, model, chatCall())).catch(() => undefined));
		const all = ask(4);
		await until(() => a.open() + b.open() === 4);
		for (const between of [snapshotOf(withoutA), snapshotOf(withoutA)]) {
			upstreams.sync(between);
			upstreams.sync(snapshotOf(model));
			all.push(...ask(4));
		}
		expect(upstreams.replicas().map(({ inFlight, draining }) => [inFlight, draining])).toEqual([
			[2, false],
			[2, false],
		]);
		await Promise.all(all);
		expect(most).toBeLessThanOrEqual(2);
		expect(upstreams.replicas().map(({ inFlight }) => inFlight)).toEqual([0, 0]);
	});
});
