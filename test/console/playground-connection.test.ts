import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import type { ConsoleParts } from "../../src/console/console-deps.ts";
import { createConsoleLimiter } from "../../src/console/console-limiter.ts";
import type { GatewayRequest } from "../../src/console/gateway-client.ts";
import { playgroundChat } from "../../src/console/playground.ts";
import { IDLE_TIMEOUT_S } from "../../src/gateway/connection.ts";

/** Runs a playground chat. `send` stands for the gateway. */
function asked(send: (request: GatewayRequest) => Promise<Response>, signal = new AbortController().signal) {
	const timeouts: number[] = [];
	const url = "http://console.internal/api/console/playground/chat?key=key_1";
	const request = new Request(url, { method: "POST", body: "{}", signal });
	const parts = {
		limiter: createConsoleLimiter({ clock: systemClock }),
		sessions: { allow: () => ({ accountId: "acc_1", viewer: { userId: "user_1" }, scope: "all" }) },
		statements: async () => [{ digest: "d".repeat(64) }],
		gateways: { send },
	} as unknown as ConsoleParts;
	const connection = { request, address: "", setIdleTimeout: (seconds: number) => void timeouts.push(seconds) };
	return { chat: playgroundChat(parts, connection), timeouts };
}

test("the connection of a playground chat that failed is closed when idle", async () => {
	const failed = asked(() => Promise.reject(new Error("no gateway is running")));
	await expect(failed.chat).rejects.toThrow("no gateway");
	expect(failed.timeouts.at(-1)).toBe(IDLE_TIMEOUT_S);
	const empty = asked(async () => new Response(null, { status: 204 }));
	expect((await empty.chat).body).toBeNull();
	expect(empty.timeouts.at(-1)).toBe(IDLE_TIMEOUT_S);
});

test("a playground chat whose page was closed before its call reaches no gateway", async () => {
	const signals: AbortSignal[] = [];
	const { chat } = asked(async ({ signal }) => {
		signals.push(signal);
		return Response.json({});
	}, AbortSignal.abort());
	await chat.catch(() => {});
	expect(signals.filter(({ aborted }) => !aborted)).toEqual([]);
});
