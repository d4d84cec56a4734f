import { expect, test } from "bun:test";
import { join } from "node:path";
import { createLog } from "../../src/base/log.ts";
import { createUpstreams } from "../../src/upstream/upstreams.ts";
import { untilEnd } from "../support/at-end.ts";
import { askChat, chatCall, limitsWith, modelOver, snapshotOf } from "../support/upstream-catalog.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { startUpstream } from "../support/upstream-server.ts";
import { SPEC } from "../support/upstream-set.ts";

const server = untilEnd(startUpstream({ dialect: "vllm" }));

async function whileShort(host: string, ...more: string[]): Promise<unknown> {
	const script = [process.execPath, join(import.meta.dir, "shortage-child.ts"), `http://${host}:${server.port}/v1`];
	const child = Bun.spawn(["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", ...script, ...more], {
		stdio: ["ignore", "pipe", "inherit"],
	});
	const printed = JSON.parse(await new Response(child.stdout).text());
	expect(await child.exited).toBe(0);
	return printed;
}

test.each(["127.0.0.1", "localhost"])(
	"descriptors that this process lacks are not the fault of a server at %s",
	async (host) => {
		expect(await whileShort(host)).toEqual([
			{ kinds: { shortage: 30 }, health: "up", breaker: "closed" },
			{ kinds: { answered: 30 }, health: "up", breaker: "closed" },
		]);
	},
);

test("nor are they where a few are there again when calls have failed", async () => {
	expect(await whileShort("localhost", "few")).toEqual([
		{ kinds: { shortage: 30 }, health: "up", breaker: "closed" },
		{ kinds: { answered: 30 }, health: "up", breaker: "closed" },
	]);
});

test("nor are they where there are some again when a check of its health has failed", async () => {
	expect(await whileShort("localhost", "late")).toEqual(["up"]);
});

test("of calls that no descriptor is left for, the log says how many, and not each", async () => {
	const clock = createManualClock();
	const said: unknown[] = [];
	const log = createLog({ level: "warn", write: (line) => void said.push(JSON.parse(line).calls) });
	const noneLeft = Object.assign(new Error("none is left"), { code: "EMFILE" });
	const upstreams = createUpstreams(
		{ clock, log, fetch: () => Promise.reject(noneLeft) },
		{ limits: () => limitsWith({}) },
	);
	const model = modelOver([SPEC]);
	upstreams.sync(snapshotOf(model));
	const calls = async (count: number) => {
		for (let call = 0; call < count; call += 1)
			expect(await askChat(upstreams, model, chatCall()).catch((error) => error.kind)).toBe("shortage");
	};
	await calls(30);
	expect(said).toEqual([1]);
	clock.advance(10_000);
	expect(said).toEqual([1, 29]);
	clock.advance(20_000);
	await calls(1);
	expect(said).toEqual([1, 29, 1]);
	await upstreams.stop();
});
