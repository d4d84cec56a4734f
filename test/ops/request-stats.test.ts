import { expect, test } from "bun:test";
import { createMetrics } from "../../src/ops/metrics.ts";
import { createRequestStats, requestReadings } from "../../src/ops/request-stats.ts";
import { replicaReadings } from "../../src/ops/service-readings.ts";

/** As many models as a large aggregator offers. */
const MODELS = 5_000;
const ENDINGS = ["finished", "client_left", "upstream_died", "upstream_failed"];

const seriesOf = (text: string, name: string) => text.split("\n").filter((line) => line.startsWith(`${name}{`));
const countOf = (line: string) => Number(line.slice(line.lastIndexOf(" ")));

test("the number of metric series is limited, and their sum counts all requests", async () => {
	const stats = createRequestStats();
	for (let nth = 0; nth < MODELS; nth++)
		for (const ending of ENDINGS)
			stats.record({
				endpoint: "chat",
				model: `model-${nth}`,
				ending,
				promptTokens: 3,
				completionTokens: 2,
				charged: 7,
				first: 5,
				ms: 9,
			});
	const text = await createMetrics(requestReadings(stats), []).text();
	const requests = seriesOf(text, "tollgate_requests_total");
	expect(requests.length).toBe(2_000 + ENDINGS.length);
	expect(requests.reduce((sum, line) => sum + countOf(line), 0)).toBe(MODELS * ENDINGS.length);
	const others = requests.filter((line) => line.includes('model="other"'));
	expect(others.map((line) => /ending="(\w+)"/.exec(line)?.[1]).toSorted()).toEqual(ENDINGS.toSorted());
	const charged = seriesOf(text, "tollgate_charged_nano_usd_total").reduce((sum, line) => sum + countOf(line), 0);
	expect(charged).toBe(7 * MODELS * ENDINGS.length);
});

test("replicas with problems have metric series first; the totals count all replicas", async () => {
	const replicas = Array.from({ length: MODELS }, (_, nth) =>
		[0, 1].map((at) => ({
			alias: `model-${nth}#${at}`,
			modelId: `model-${nth}`,
			health: nth === MODELS - 1 && at === 0 ? "down" : "up",
			breaker: nth === MODELS - 2 && at === 1 ? "open" : "closed",
			inFlight: 0,
			maxConcurrency: 4,
			refused: 0,
			contradictions: 0,
			promptTokens: 50,
			cachedTokens: 40,
			waitMs: 1_500,
		})),
	).flat();
	const text = await createMetrics(
		replicaReadings(() => replicas),
		[],
	).text();
	const up = seriesOf(text, "tollgate_replica_up");
	expect(up.length).toBe(1_000);
	for (const [name, value] of Object.entries({ prompt_tokens_total: 50, cached_tokens_total: 40, wait_seconds: 1.5 }))
		expect(seriesOf(text, `tollgate_replica_${name}`)[0]).toEndWith(` ${value}`);
	for (const troubled of [MODELS - 1, MODELS - 2])
		expect(up.filter((line) => line.includes(`model="model-${troubled}"`)).length).toBe(2);
	const perModel = Map.groupBy(up, (line) => /model="([^"]+)"/.exec(line)?.[1]);
	expect([...perModel.values()].every((lines) => lines.length === 2)).toBe(true);
	expect(seriesOf(text, "tollgate_replicas")).toEqual([
		`tollgate_replicas{state="up"} ${2 * MODELS - 1}`,
		'tollgate_replicas{state="down"} 1',
		'tollgate_replicas{state="breaker_open"} 1',
	]);
});
