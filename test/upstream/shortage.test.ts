import { expect, test } from "bun:test";
import { join } from "node:path";
import { untilEnd } from "../support/at-end.ts";
import { startUpstream } from "../support/upstream-server.ts";

const server = untilEnd(startUpstream({ dialect: "vllm" }));

test.each(["127.0.0.1", "localhost"])(
	"descriptors that this process lacks are not the fault of a server at %s",
	async (host) => {
		const url = `http://${host}:${server.port}/v1`;
		const child = Bun.spawn(
			["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", process.execPath, join(import.meta.dir, "shortage-child.ts"), url],
			{
				stdio: ["ignore", "pipe", "inherit"],
			},
		);
		expect(JSON.parse(await new Response(child.stdout).text())).toEqual([
			{ kinds: { shortage: 30 }, health: "up", breaker: "closed" },
			{ kinds: { answered: 30 }, health: "up", breaker: "closed" },
		]);
		expect(await child.exited).toBe(0);
	},
);
