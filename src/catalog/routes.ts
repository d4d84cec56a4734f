import { assert } from "../base/assert.ts";
import type { Model, Route, RouteSpec } from "./model.ts";

/** Resolves routes over the models of the same file. */
export function resolveRoutes(specs: readonly RouteSpec[], models: ReadonlyMap<string, Model>): Map<string, Route> {
	return new Map(specs.map((spec) => [spec.id, resolveRoute(spec, models)]));
}

function resolveRoute({ id, name, modelIds, by }: RouteSpec, models: ReadonlyMap<string, Model>): Route {
	const listed = modelIds.map((modelId) => {
		const model = models.get(modelId);
		assert(model !== undefined, "a route names models of its own file");
		return model;
	});
	const [first, ...others] = by === "price" ? listed.toSorted(byPrice) : listed;
	assert(first !== undefined, "a route names at least one model");
	return Object.freeze({ id, name, models: Object.freeze([first, ...others] as const), by });
}

function byPrice(a: Model, b: Model): number {
	const [priceA, priceB] = [typicalPrice(a), typicalPrice(b)];
	return priceA < priceB ? -1 : priceA > priceB ? 1 : 0;
}

/** The price of 3,000 prompt and 1,000 output tokens, or of one unit of the other kinds. Only for comparison. */
function typicalPrice({ kind, rateCard }: Model): bigint {
	const { input, output, request, audioSecond, image, search } = rateCard;
	const units = { chat: 0, embedding: 0, transcription: audioSecond, image, rerank: search }[kind];
	return 3_000n * BigInt(input) + 1_000n * BigInt(output) + BigInt(request) + BigInt(units);
}
