import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { DialectName } from "../../src/catalog/model.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";
import { createUpstreams, type Upstreams } from "../../src/upstream/upstreams.ts";
import { chatCall, collect, limitsWith, modelOver, openChat, snapshotOf } from "../support/upstream-catalog.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const DEADLINE_MS = 5_000;

async function until(condition: () => boolean): Promise<void> {
	const endMs = performance.now() + DEADLINE_MS;
	while (!condition()) {
		if (performance.now() > endMs) throw new Error("the condition never came");
		await Bun.sleep(2);
	}
}

describe("health", () => {
	let server: UpstreamServer;
	let upstreams: Upstreams;
	beforeEach(() => {
		server = startUpstream({ dialect: "vllm" });
		upstreams = createUpstreams(
			{ clock: systemClock, log: silentLog },
			{ limits: limitsWith({ healthIntervalMs: 10 }) },
		);
	});
	afterEach(async () => {
		await upstreams.stop();
		await server.stop();
	});

	test("a replica that says it is not ready gets no traffic until it recovers, then slowly", async () => {
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

	test("an address where nobody listens is down after the first question", async () => {
		await server.stop();
		upstreams.sync(snapshotOf(modelOver([server.spec()])));
		await until(() => upstreams.replicas()[0]?.health === "down");
		expect(upstreams.connected("test-model")).toBe(false);
		expect(upstreams.connected("no-such-model")).toBe(false);
	});

	test("no question costs a generation: none goes to a completions address, none goes on after stop", async () => {
		upstreams.sync(snapshotOf(modelOver([server.spec()])));
		await until(() => server.healthProbes() >= 3);
		expect(server.requests).toHaveLength(0);
		await upstreams.stop();
		const after = server.healthProbes();
		await Bun.sleep(60);
		expect(server.healthProbes()).toBe(after);
	});

	test("stop in the middle of a question leaves nothing behind", async () => {
		const clock = createManualClock();
		const stopped = createUpstreams({ clock, log: silentLog }, { limits: limitsWith({}) });
		stopped.sync(snapshotOf(modelOver([server.spec()])));
		expect(clock.pending()).toBe(1);
		await stopped.stop();
		expect(clock.pending()).toBe(0);
	});

	test("each family is asked at its own unbilled address", () => {
		const base = "http://10.0.0.1:8000/v1";
		const root = "http://10.0.0.1:8000";
		const expected: Record<DialectName, string> = {
			openai: `${base}/models`,
			vllm: `${root}/health`,
			sglang: `${base}/models`,
			"llama.cpp": `${root}/health`,
			ollama: `${root}/api/version`,
			tgi: `${root}/health`,
			tei: `${root}/health`,
		};
		for (const [name, url] of Object.entries(expected)) expect(DIALECTS[name as DialectName].healthUrl(base)).toBe(url);
	});
});
