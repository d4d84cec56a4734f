import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { DialectName } from "../../src/catalog/model.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";
import { createUpstreams, type Upstreams } from "../../src/upstream/upstreams.ts";
import { localServer } from "../support/at-end.ts";
import { chatEvent } from "../support/raw-answer.ts";
import { chatCall, collect, limitsWith, modelOver, openChat, snapshotOf } from "../support/upstream-catalog.ts";
import { createManualClock, type ManualClock } from "../support/upstream-clock.ts";
import { reply, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";
import { until } from "../support/upstream-set.ts";

/** One replica whose health checks the test triggers and answers. */
function asked() {
	const clock = createManualClock();
	let delayMs = 0;
	const after: ManualClock["after"] = (ms, run) => {
		delayMs = ms;
		return clock.after(ms, run);
	};
	const asking = createUpstreams(
		{ clock: { ...clock, after }, log: silentLog },
		{ limits: () => limitsWith({ healthIntervalMs: 60_000 }) },
	);
	return {
		asking,
		health: () => asking.replicas()[0]?.health,
		/** After an answered health check, the only pending timer is the one for the next check. */
		isAnswered: () => clock.pending() === 1 && delayMs > 30_000,
		askAgain: () => clock.advance(delayMs),
	};
}

describe("the health check of a replica", () => {
	let server: UpstreamServer;
	let upstreams: Upstreams;
	beforeEach(() => {
		server = startUpstream({ dialect: "vllm" });
		upstreams = createUpstreams(
			{ clock: systemClock, log: silentLog },
			{ limits: () => limitsWith({ healthIntervalMs: 10 }) },
		);
	});
	afterEach(async () => {
		await upstreams.stop();
		await server.stop();
	});

	test("keeps requests from a replica that is not ready until it recovers", async () => {
		const model = modelOver([server.spec({ maxConcurrency: 100 })]);
		upstreams.sync(snapshotOf(model));
		expect(upstreams.connected("test-model")).toBe(true);
		await until(() => upstreams.replicas()[0]?.health === "up");
		server.setHealth(503);
		await until(() => !upstreams.connected("test-model"));
		expect((await collect(openChat(upstreams, model, chatCall()))).error).toMatchObject({
			code: "service_unavailable",
		});
		expect(server.requests).toHaveLength(0);
		server.setHealth(200);
		await until(() => upstreams.connected("test-model"));
		expect((await collect(openChat(upstreams, model, chatCall()))).error).toBeUndefined();
	});

	test("marks an address that refuses connections as down after one check", async () => {
		await server.stop();
		const { asking, health, isAnswered } = asked();
		asking.sync(snapshotOf(modelOver([server.spec()])));
		await until(isAnswered);
		expect(health()).toBe("down");
		expect(asking.connected("test-model")).toBe(false);
		expect(asking.connected("no-such-model")).toBe(false);
		await asking.stop();
	});

	test('marks a replica as down after two consecutive "not ready" answers', async () => {
		const { asking, health, isAnswered, askAgain } = asked();
		const heard: string[] = [];
		for (const status of [200, 503, 200, 503, 503, 200]) {
			server.setHealth(status);
			if (heard.length === 0) asking.sync(snapshotOf(modelOver([server.spec()])));
			else askAgain();
			await until(isAnswered);
			heard.push(`${status} ${health()}`);
		}
		expect(heard).toEqual(["200 up", "503 up", "200 up", "503 up", "503 down", "200 up"]);
		await asking.stop();
	});

	test('ignores "not ready" after the replica has answered a request', async () => {
		const model = modelOver([server.spec()]);
		const health = () => upstreams.replicas()[0]?.health;
		const asked = async (times: number) => {
			const before = server.healthProbes();
			await until(() => server.healthProbes() >= before + times);
		};
		server.setHealth(500);
		upstreams.sync(snapshotOf(model));
		await until(() => health() === "down");
		while ((await collect(openChat(upstreams, model, chatCall()))).error !== undefined) await asked(1);
		await asked(5);
		expect(health()).toBe("up");
		expect((await collect(openChat(upstreams, model, chatCall()))).error).toBeUndefined();
		server.setHealth(200);
		await asked(2);
		server.setHealth(500);
		await until(() => health() === "down");
	});

	test("requests no completion, and ends when `stop` is called", async () => {
		upstreams.sync(snapshotOf(modelOver([server.spec()])));
		await until(() => server.healthProbes() >= 3);
		expect(server.requests).toHaveLength(0);
		await upstreams.stop();
		const after = server.healthProbes();
		await Bun.sleep(60);
		expect(server.healthProbes()).toBe(after);
	});

	test("leaves no timer if `stop` is called during a check", async () => {
		const clock = createManualClock();
		const stopped = createUpstreams({ clock, log: silentLog }, { limits: () => limitsWith({}) });
		stopped.sync(snapshotOf(modelOver([server.spec()])));
		expect(clock.pending()).toBe(1);
		await stopped.stop();
		expect(clock.pending()).toBe(0);
	});

	test("skips a replica that answered requests recently", async () => {
		const clock = createManualClock();
		const quiet = createUpstreams({ clock, log: silentLog }, { limits: () => limitsWith({ healthIntervalMs: 5_000 }) });
		const model = modelOver([server.spec()]);
		quiet.sync(snapshotOf(model));
		await until(() => quiet.replicas()[0]?.health === "up" && clock.pending() === 1);
		const asked = server.healthProbes();
		const gate = Promise.withResolvers<void>();
		server.next(reply().text("a b c").pauseAfter(1, gate.promise), reply());
		const stream = openChat(quiet, model, chatCall());
		await stream.next();
		// Advances by the longest randomised interval, so that every due check has been sent.
		clock.advance(4_000);
		gate.resolve();
		expect((await collect(stream)).error).toBeUndefined();
		for (let round = 0; round < 10; round += 1) {
			await collect(openChat(quiet, model, chatCall()));
			clock.advance(4_900);
		}
		expect(server.healthProbes()).toBe(asked);
		expect(quiet.replicas()[0]?.health).toBe("up");
		await until(() => {
			clock.advance(1_000);
			return server.healthProbes() > asked;
		});
		await quiet.stop();
	});

	test("does not interrupt the stream of llama-cpp-python", async () => {
		const breakers = new Set<() => void>();
		const single = localServer((request) => {
			// As in llama-cpp-python, a GET aborts the running stream because it takes the model's lock; a HEAD is refused.
			if (request.method === "HEAD") return new Response(null, { status: 405 });
			if (request.method === "GET") {
				for (const interrupt of breakers) interrupt();
				return Response.json({ object: "list", data: [] });
			}
			const interrupted = new Promise<void>((resolve) => breakers.add(resolve));
			async function* body() {
				for (const event of [chatEvent({ content: "a" }), chatEvent({ content: "b" }), chatEvent({}, "stop")]) {
					yield `data: ${JSON.stringify(event)}\n\n`;
					if (await Promise.race([interrupted.then(() => true), Bun.sleep(60).then(() => false)])) break;
				}
				yield "data: [DONE]\n\n";
			}
			return new Response(body() as unknown as ReadableStream, { headers: { "content-type": "text/event-stream" } });
		});
		const spec = server.spec({ url: `http://127.0.0.1:${single.port}/v1`, dialect: "openai" });
		const model = modelOver([spec]);
		upstreams.sync(snapshotOf(model));
		await until(() => upstreams.replicas()[0]?.health === "up");
		const got = await collect(openChat(upstreams, model, chatCall()));
		expect(got.error).toBeUndefined();
		expect(got.text).toEqual(["ab"]);
	});

	test("sends the health request of each dialect", () => {
		const base = "http://10.0.0.1:8000/v1";
		const root = "http://10.0.0.1:8000";
		const expected: Record<DialectName, [string, string]> = {
			openai: ["HEAD", `${base}/models`],
			vllm: ["GET", `${root}/health`],
			sglang: ["GET", `${base}/models`],
			"llama.cpp": ["GET", `${root}/health`],
			ollama: ["GET", `${root}/api/version`],
			tgi: ["GET", `${root}/health`],
			tei: ["GET", `${root}/health`],
		};
		for (const [name, [method, url]] of Object.entries(expected))
			expect(DIALECTS[name as DialectName].healthProbe(base)).toEqual({ method: method as "GET", url });
	});
});
