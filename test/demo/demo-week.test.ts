import { expect, test } from "bun:test";
import { NO_QUANTITIES, priceOf } from "../../src/admission/price.ts";
import type { Model } from "../../src/catalog/model.ts";
import { demoWeek } from "../../src/demo/demo-week.ts";
import { demoModelSpec, type FoundModel } from "../../src/demo/found-model.ts";

const NOW_MS = Date.parse("2026-03-05T15:20:00Z");
const WEEK_MS = 7 * 24 * 3_600_000;

function model(id: string, limits: Partial<FoundModel> = {}): Model {
	const upstream = { url: "http://127.0.0.1:1/v1", model: id, dialect: "openai" } as const;
	const sizes = { contextLength: 8192, maxOutputTokens: 1024, ...limits };
	const { batch: _, ...spec } = demoModelSpec({
		id,
		name: id,
		kind: "chat",
		modes: ["chat"],
		parameters: [],
		upstream,
		...sizes,
	});
	return { ...spec, createdS: 0, rateCard: { ...spec.rates, id: `${id}@1`, version: 1 } };
}

const week = (models: readonly Model[], nowMs = NOW_MS) =>
	demoWeek({ nowMs, accountId: "acc_a", webKeyId: "key_web", nightKeyId: "key_night", models });

test("the demo's week of sample usage is in the past and has few failures", () => {
	const events = week([model("a"), model("b")]);
	expect(events.length).toBeGreaterThan(700);
	expect(events.length).toBeLessThan(5_000);
	for (const { at } of events) expect(at > NOW_MS - WEEK_MS && at < NOW_MS).toBe(true);
	const share = (pick: (event: (typeof events)[number]) => boolean) => events.filter(pick).length / events.length;
	expect(share(({ ending }) => ending === "finished")).toBeGreaterThan(0.94);
	expect(share(({ ending }) => ending === "upstream_failed")).toBeGreaterThan(0.001);
	expect(share(({ ending }) => ending === "client_left")).toBeGreaterThan(0.005);
	expect(share(({ model }) => model === "a")).toBeGreaterThan(0.5);
	expect(share(({ model }) => model === "b")).toBeGreaterThan(0.2);
	expect(share(({ key }) => key === "key_night")).toBeGreaterThan(0.1);
	expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
});

test("each sample charge of the demo is the price of its tokens; failures are free", () => {
	const only = model("small", { contextLength: 512, maxOutputTokens: 64 });
	for (const event of week([only])) {
		const { promptTokens, completionTokens, charged, reserved, ending } = event;
		expect(promptTokens + completionTokens).toBeLessThanOrEqual(512);
		expect(completionTokens).toBeLessThanOrEqual(64);
		const failed = ending === "upstream_failed";
		const price = priceOf(only.rateCard, { ...NO_QUANTITIES, promptTokens, completionTokens, requests: 1 });
		expect(charged as number).toBe(failed ? 0 : (price as number));
		expect(reserved as number).toBeGreaterThanOrEqual(charged);
	}
});

test("the demo's week of sample usage is equal whenever it is made for the same time", () => {
	const without = (nowMs: number) => week([model("a")], nowMs).map(({ id: _, ...event }) => event);
	expect(without(NOW_MS)).toEqual(without(NOW_MS));
});
