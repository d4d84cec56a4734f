import { assert } from "../base/assert.ts";
import type { Model, ModelSpec, Route, RouteOrder, RouteSpec } from "./model.ts";
import { type ClaimName, readModelId, readName } from "./model-section.ts";
import { byPrice } from "./rate-cards.ts";
import { quoteValue, type YamlField, type YamlReader } from "./yaml-reader.ts";

export const ROUTE_FIELDS = ["id", "name", "models", "by"] as const;
const ORDERS: readonly RouteOrder[] = ["listed", "price", "speed"];
/** Maximum number of models of a route. A request may try all of them. */
const ROUTE_MODELS_MAX = 8;

/** Reads an entry of `routes:`, whose models must be in the same file. Undefined if the entry has a mistake. */
export function readRoute(
	reader: YamlReader,
	field: YamlField,
	models: readonly ModelSpec[],
	claim: ClaimName,
): RouteSpec | undefined {
	const map = reader.map(field, ROUTE_FIELDS);
	if (map === undefined) return undefined;
	const id = readModelId(reader, map.require("id"), claim);
	const name = readName(reader, map.get("name")) ?? id;
	const by = reader.choice(map.get("by"), ORDERS) ?? "listed";
	const modelIds = readModels(reader, map.require("models"), models);
	if (id === undefined || name === undefined) return undefined;
	return Object.freeze({ id, name, modelIds: Object.freeze(modelIds), by });
}

function readModels(reader: YamlReader, field: YamlField | undefined, models: readonly ModelSpec[]): string[] {
	const items = reader.list(field, ROUTE_MODELS_MAX);
	if (field === undefined || items === undefined) return [];
	if (items.length === 0) reader.report(field, "needs at least one model");
	const found = new Map<string, ModelSpec>();
	for (const item of items) {
		const name = reader.text(item);
		if (name === undefined) continue;
		const model = models.find(({ id, aliases }) => id === name || aliases.includes(name));
		const kind = found.values().next().value?.kind;
		if (model === undefined) reader.report(item, `there is no model ${quoteValue(name)} in this file`);
		else if (found.has(model.id)) reader.report(item, `${quoteValue(name)} is listed twice`);
		else if (kind !== undefined && model.kind !== kind)
			reader.report(item, `${quoteValue(name)} is of kind ${model.kind}, the models before it of kind ${kind}`);
		else found.set(model.id, model);
	}
	return [...found.keys()];
}

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
