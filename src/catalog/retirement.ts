import { parseIsoMs } from "../base/iso-date.ts";
import type { ModelSpec, RetiredModel, RouteSpec } from "./model.ts";

interface Named {
	readonly models: readonly ModelSpec[];
	readonly routes: readonly RouteSpec[];
}

function hasRetired({ retiresOn }: Pick<ModelSpec, "retiresOn">, nowMs: number): boolean {
	return retiresOn !== undefined && nowMs >= (parseIsoMs(retiresOn) ?? Number.POSITIVE_INFINITY);
}

export function countRetired(models: readonly ModelSpec[], nowMs: number): number {
	return models.filter((model) => hasRetired(model, nowMs)).length;
}

/**
 * Models and routes that are served at a given time. Removes retired models, also from routes, and routes without
 * models. `retired` has their names, so that errors can give the day; it excludes private models.
 */
export function servedModelsAt(
	{ models, routes }: Named,
	nowMs: number,
): Named & { retired: ReadonlyMap<string, RetiredModel> } {
	const gone = new Set<string>();
	const names = new Map<string, RetiredModel>();
	for (const model of models) {
		if (!hasRetired(model, nowMs)) continue;
		gone.add(model.id);
		if (model.visibleTo !== undefined) continue;
		const retired = { on: model.retiresOn ?? "", kind: model.kind };
		for (const name of [model.id, ...model.aliases]) names.set(name, retired);
	}
	if (gone.size === 0) return { models, routes, retired: names };
	const left: RouteSpec[] = [];
	for (const route of routes) {
		const modelIds = route.modelIds.filter((id) => !gone.has(id));
		if (modelIds.length > 0) {
			left.push({ ...route, modelIds });
			continue;
		}
		const [last] = route.modelIds.flatMap((id) => names.get(id) ?? []).toSorted((a, b) => (a.on < b.on ? 1 : -1));
		if (last !== undefined) names.set(route.id, last);
	}
	return { models: models.filter(({ id }) => !gone.has(id)), routes: left, retired: names };
}
