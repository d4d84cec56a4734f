import type { ModelSpec, RouteOrder, RouteSpec } from "./model.ts";
import { type ClaimName, readId, readName } from "./model-section.ts";
import type { YamlReader } from "./yaml-reader.ts";
import { show, type YamlField } from "./yaml-scalars.ts";

export const ROUTE_FIELDS = ["id", "name", "models", "by"] as const;
const ORDERS: readonly RouteOrder[] = ["listed", "price", "speed"];
/** A request may try all of them in turn. */
const ROUTE_MODELS_MAX = 8;

/** Reads one entry of `routes:`, over models of the same file. Undefined after a problem. */
export function readRoute(
	reader: YamlReader,
	field: YamlField,
	models: readonly ModelSpec[],
	claim: ClaimName,
): RouteSpec | undefined {
	const map = reader.map(field, ROUTE_FIELDS);
	if (map === undefined) return undefined;
	const id = readId(reader, map.require("id"), claim);
	const name = readName(reader, map.get("name")) ?? id;
	const by = reader.choice(map.get("by"), ORDERS) ?? "listed";
	const modelIds = readModels(reader, map.require("models"), models);
	if (id === undefined || name === undefined) return undefined;
	return Object.freeze({ id, name, modelIds: Object.freeze(modelIds), by });
}

/** Reads ids of models of one kind. */
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
		if (model === undefined) reader.report(item, `there is no model ${show(name)} in this file`);
		else if (found.has(model.id)) reader.report(item, `${show(name)} is listed twice`);
		else if (kind !== undefined && model.kind !== kind)
			reader.report(item, `${show(name)} is of kind ${model.kind}, the models before it of kind ${kind}`);
		else found.set(model.id, model);
	}
	return [...found.keys()];
}
