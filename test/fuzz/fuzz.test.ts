/**
 * Random JSON, forms and raw HTTP, and mutated recordings and answers of model servers: no 5xx, no crash, and correct
 * books. `bun run fuzz` is the long form: `FUZZ_MINUTES` in total, `FUZZ_SEED` to repeat a run.
 */
import { expect, test } from "bun:test";
import { withProduct } from "../attack/product.ts";
import { watchSteps } from "../attack/steps.ts";
import { untilEnd } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import { createRandom, type Random } from "../support/random.ts";
import { startEndpoints } from "../support/upstream-endpoints.ts";
import { startUpstream } from "../support/upstream-server.ts";
import { RECORDINGS } from "../wire/recording.ts";
import { fuzz, KINDS } from "./fuzz.ts";
import { mutated } from "./mutate.ts";
import { deploymentsYaml, TARGETS } from "./targets.ts";

const USAGES = [
	{ prompt_tokens: 7, completion_tokens: 2, total_tokens: 9, input_tokens: 7, output_tokens: 2, seconds: 3 },
	{ prompt_tokens: 7, completion_tokens: 2 ** 31 - 1, input_tokens: 2 ** 40, output_tokens: 1, seconds: 1e9 },
	undefined,
];
const STATUSES = [206, 204, 301, 400, 401, 404, 413, 422, 429, 500, 503, 529];
const TYPES = ["application/json", "text/event-stream", "text/plain", ""];

function startServers(random: Random) {
	const chats = startUpstream();
	const others = startEndpoints("openai");
	const plain = { hostname: "127.0.0.1", port: 0, idleTimeout: 0, development: false } as const;
	let answers = 0;

	const good = Bun.serve({
		...plain,
		async fetch(request) {
			const { pathname } = new URL(request.url);
			const base = pathname.endsWith("/chat/completions") || request.method !== "POST" ? chats.url : others.url;
			const body = request.method === "POST" ? await request.arrayBuffer() : null;
			const answer = await fetch(base.replace("/v1", pathname), {
				method: request.method,
				headers: request.headers,
				body,
			});
			return new Response(answer.body, { status: answer.status, headers: answer.headers });
		},
	});

	function lie(path: string, streamed: boolean): Response {
		const chat = path.endsWith("/completions") && streamed;
		const recorded = RECORDINGS.filter(({ endpoint }) =>
			path.endsWith(endpoint === "chat" ? "/chat/completions" : "/v1/completions"),
		);
		const alike = TARGETS.filter((target) => target.path === path && target.name.includes("streamed") === streamed);
		const made = alike.length === 0 ? undefined : random.pick(alike).answer(random.pick(USAGES));
		const isRecorded = chat && recorded.length > 0 && random.chance(0.7);
		const bytes = isRecorded ? random.pick(recorded).bytes : Buffer.from(made?.body ?? "{}");
		const type = isRecorded ? "text/event-stream" : (made?.contentType ?? "application/json");
		answers += 1;
		const status = random.chance(0.15) ? random.pick(STATUSES) : 200;
		return new Response(status === 204 ? null : mutated(bytes, random), {
			status,
			headers: { "content-type": random.chance(0.1) ? random.pick(TYPES) : type },
		});
	}

	const lying = Bun.serve({
		...plain,
		async fetch(request) {
			if (request.method !== "POST") return Response.json({ object: "list", data: [] });
			const streamed = /"stream":true|name="stream"\r\n\r\ntrue/.test(await request.text());
			return lie(new URL(request.url).pathname, streamed);
		},
	});
	return {
		goodUrl: `http://127.0.0.1:${good.port}/v1`,
		lyingUrl: `http://127.0.0.1:${lying.port}/v1`,
		answers: () => answers,
		async stop() {
			await Promise.all([good.stop(true), lying.stop(true), chats.stop(), others.stop()]);
		},
	};
}

const minutes = Number(Bun.env.FUZZ_MINUTES ?? 0);
const seed = Number(Bun.env.FUZZ_SEED ?? (minutes > 0 ? Date.now() % 2 ** 31 : 7));
const INPUTS = LONG || minutes > 0 ? 150 : 40;
/** Limit of CPU time for one step; without the product's limits a step took seconds. */
const HELD_MS_MAX = 150;

const servers = untilEnd(startServers(createRandom(seed + 1)));
const steps = watchSteps();
const product = await withProduct({
	models: `${deploymentsYaml(servers.goodUrl)}\n${deploymentsYaml(servers.lyingUrl, "lying-")}`,
	limits:
		"  first_event_s: 2\n  silence_s: 1\n  total_s: 5\n  status_hold_s: 1\n  breaker_failures_in_row: 1000\n  breaker_failure_share: 1\n  auth_failures_per_minute: 1000000",
	...steps.options,
});

test(
	"no random input causes a 500, a crash, a delay or incorrect books",
	async () => {
		const msAKind = (minutes * 60_000) / KINDS.length;
		const { tallies, defects } = await fuzz(product, { seed, inputs: INPUTS, msAKind, steps, concurrency: 4 });
		if (minutes > 0) {
			console.log(`seed ${seed}, ${servers.answers()} answers changed, ${defects.length} defects`);
			console.log(JSON.stringify(tallies, undefined, "\t"));
		}
		expect([`seed ${seed}`, ...defects]).toEqual([`seed ${seed}`]);
		for (const kind of KINDS) {
			expect(tallies[kind].tried).toBeGreaterThanOrEqual(INPUTS);
			expect(tallies[kind].worstMs).toBeLessThan(HELD_MS_MAX);
		}
	},
	60_000 + 2 * minutes * 60_000,
);
