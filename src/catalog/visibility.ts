import type { CatalogSnapshot, Model } from "./model.ts";

/** An account that looks at the catalogue. */
export interface CatalogViewer {
	readonly id: string;
	readonly tags: readonly string[];
}

/** Whether a model is for the account. Null: an account that is not known, as on public pages. */
export function isVisible({ visibleTo }: Pick<Model, "visibleTo">, account: CatalogViewer | null): boolean {
	if (visibleTo === undefined) return true;
	return account !== null && isNamed(visibleTo, account);
}

/** A separate function, because a closure costs each call an object. */
function isNamed(names: readonly string[], { id, tags }: CatalogViewer): boolean {
	return names.some((name) => name === id || tags.includes(name));
}

/** The catalogue with only the models for the account, and routes to them. */
export function visiblePart(snapshot: CatalogSnapshot, account: CatalogViewer | null): CatalogSnapshot {
	const all = [...snapshot.models.values()];
	const models = all.filter((model) => isVisible(model, account));
	if (models.length === all.length) return snapshot;
	const routes = [...snapshot.routes.values()].flatMap((route) => {
		const [first, ...others] = route.models.filter((model) => isVisible(model, account));
		return first === undefined ? [] : [[route.id, { ...route, models: [first, ...others] as const }] as const];
	});
	return { ...snapshot, models: new Map(models.map((model) => [model.id, model])), routes: new Map(routes) };
}
