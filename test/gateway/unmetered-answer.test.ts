import { expect, test } from "bun:test";
import { Fault } from "../../src/base/fault.ts";
import { createLog } from "../../src/base/log.ts";
import { DEFAULT_LIMITS } from "../../src/catalog/service-limits.ts";
import { createBodyMemory } from "../../src/gateway/body/body-memory.ts";
import { createUnmeteredEndpoint } from "../../src/gateway/unmetered-answer.ts";
import { invalidApiKey } from "../../src/keys/bearer.ts";
import type { KeyEntry } from "../../src/keys/key-entry.ts";
import { createRequestStats } from "../../src/ops/request-stats.ts";

const key = { accountId: "acc_1" } as KeyEntry;

function build(authenticate: () => KeyEntry | Promise<KeyEntry> = () => key) {
	const stats = createRequestStats();
	const lines: Record<string, unknown>[] = [];
	const log = createLog({ level: "error", write: (line) => void lines.push(JSON.parse(line)) });
	const telemetry = { log, stats: { ...stats, gap() {} }, refusals: { record() {} } };
	const connectionOf = (request: Request) => ({ request, address: "", setIdleTimeout() {} });
	const bodyMemory = createBodyMemory({ limits: () => DEFAULT_LIMITS });
	const unmetered = createUnmeteredEndpoint({
		...{ admission: { checkOpen() {} }, clients: { bodyMemory } },
		...{ authenticate, telemetry, connectionOf },
	});
	const ask = (answer: Parameters<typeof unmetered>[0], headers: Record<string, string> = {}) =>
		unmetered(answer)(new Request("http://service/v1/models", { headers }));
	return {
		ask,
		bodyMemory,
		lines,
		counted: () => Object.fromEntries([...stats.refusals()].filter(([, count]) => count > 0)),
	};
}

test("a look-up that fails by a bug is counted and logged with the request's id", async () => {
	const { ask, lines, counted } = build();
	const answer = await ask(() => {
		throw new Error("a bug's own text");
	});
	expect(answer.status).toBe(500);
	expect(await answer.text()).not.toContain("a bug's own text");
	expect(counted()).toEqual({ internal_error: 1 });
	expect(lines).toMatchObject([
		{ message: "a request failed", request: answer.headers.get("x-request-id"), account: "acc_1" },
	]);
	expect(JSON.stringify(lines)).toContain("a bug's own text");
});

test("a refused look-up is counted and not logged as an error", async () => {
	const { ask, lines, counted } = build();
	expect((await ask(() => ({ object: "list" }))).status).toBe(200);
	await ask(() => {
		throw new Fault("not_found", "There is none.");
	});
	const stranger = build(() => {
		throw invalidApiKey();
	});
	await stranger.ask(() => ({}));
	expect([counted(), stranger.counted()]).toEqual([{ not_found: 1 }, { invalid_api_key: 1 }]);
	expect([...lines, ...stranger.lines]).toEqual([]);
});

test("bodies of requests whose key is looked up count as memory of their network", async () => {
	const found = Promise.withResolvers<KeyEntry>();
	const { ask, bodyMemory, counted } = build(() => found.promise);
	const asked = Array.from({ length: 100 }, () => ask(() => ({}), { "content-length": "9000000" }));
	expect(bodyMemory.bytes()).toBe(96 * 1024 * 1024);
	found.resolve(key);
	expect((await Promise.all(asked)).filter(({ status }) => status === 200)).toHaveLength(96);
	expect([bodyMemory.bytes(), counted()]).toEqual([0, { rate_limit_exceeded: 4 }]);
});
