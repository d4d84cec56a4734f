import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_LIMITS, type ServiceLimits } from "../../src/catalog/service-limits.ts";
import { createFailedAttempts } from "../../src/keys/failed-attempts.ts";
import { createBreaker } from "../../src/upstream/replicas/breaker.ts";
import { ask, errorOf } from "../support/chat.ts";
import { chatModel, withService } from "../support/service.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";

/** Every limit of a changed file applies once the log reports the file, even to existing objects. */

const upstream = withUpstream();
const models = `${chatModel({ url: upstream.url })}\n        max_concurrency: 1`;
const service = await withService({ models });
const { secret } = await service.customer();
const post = (body: unknown) => service.chat(secret, body);

describe("a changed limit applies to the next request:", () => {
	test("the deadlines of a model call", async () => {
		await service.serve(models, "  first_event_s: 1");
		upstream.next(reply().hang());
		expect((await errorOf(await post(ask("hi", { stream: true })))).error.code).toBe("upstream_timeout");
		await service.serve(models, "  total_s: 1");
		upstream.next(reply().hang());
		expect((await errorOf(await post(ask()))).error.code).toBe("upstream_timeout");
		await service.serve(models, "  silence_s: 1");
		upstream.next(reply().text("a b c").stallAfter(1));
		const text = await (await post(ask("hi", { stream: true }))).text();
		expect(text).toContain("upstream_timeout");
	});

	test("the largest size of a body, raised or lowered", async () => {
		const body = ask("x".repeat(3 * 1024 * 1024));
		await service.serve(models, "  body_mb: 2");
		expect((await errorOf(await post(body))).status).toBe(413);
		await service.serve(models, "  body_mb: 200\n  body_memory_mb: 400");
		const large = await post(ask("x".repeat(101 * 1024 * 1024), { model: "unknown" }));
		expect((await errorOf(large)).error.code).toBe("model_not_found");
		await service.serve(models, "  body_mb: 2");
		expect((await errorOf(await post(body))).status).toBe(413);
	});

	test("the length of the queue, and the longest wait in the queue", async () => {
		const leave = new AbortController();
		await service.serve(models, "  queue_length: 0");
		const seen = upstream.requests.length;
		upstream.next(reply().hang());
		const held = service.chat(secret, ask(), { signal: leave.signal }).catch(() => undefined);
		await upstream.waitForRequest(seen + 1);
		expect((await errorOf(await post(ask()))).error.code).toBe("overloaded");
		await service.serve(models, "  queue_length: 1\n  queue_wait_s: 300");
		const waiting = post(ask());
		leave.abort();
		await held;
		expect((await waiting).status).toBe(200);
	});
});

describe("a changed limit applies to an object made before the change:", () => {
	const changing = () => {
		const now: { limits: ServiceLimits } = { limits: DEFAULT_LIMITS };
		return { now, limits: () => now.limits };
	};

	test("the circuit breaker of a model server", () => {
		const { now, limits } = changing();
		const breaker = createBreaker(createManualClock(), limits, () => false);
		const fail = (account: string) => breaker.end(breaker.begin(account), "failed");
		fail("a");
		fail("b");
		expect(breaker.state()).toBe("closed");
		now.limits = { ...DEFAULT_LIMITS, breakerFailuresInRow: 2, breakerCoolMs: 7_000 };
		fail("c");
		expect(breaker.state()).toBe("open");
	});

	test("the count of failed requests of an address", () => {
		const { now, limits } = changing();
		const attempts = createFailedAttempts(
			{ clock: createManualClock() },
			{ perMinuteMax: () => limits().authFailuresPerMinute },
		);
		attempts.count("192.0.2.1");
		now.limits = { ...DEFAULT_LIMITS, authFailuresPerMinute: 1 };
		expect(attempts.left("192.0.2.1")).toBe(0);
		expect(() => attempts.count("192.0.2.1")).toThrow();
	});
});

test("every object reads the limits when it uses them, not when it is created", () => {
	// These files read the limits for each request, so they may copy them.
	const PER_REQUEST = ["gateway/serve/streaming.ts", "gateway/serve/serve.ts", "gateway/files/file-answers.ts"];
	const source = join(import.meta.dir, "../../src");
	const taken = [...new Bun.Glob("**/*.ts").scanSync({ cwd: source })].flatMap((path) =>
		[...readFileSync(join(source, path), "utf8").matchAll(/.*\bcatalog\.limits\(\).*/g)]
			.map(([line]) => line.trim())
			.filter((line) => !line.includes("() => catalog.limits()"))
			.filter((line) => !(PER_REQUEST.includes(path) && line.includes("deps.catalog.limits()")))
			.map((line) => `${path}: ${line}`),
	);
	expect(taken).toEqual([]);
});
