import type { AccountPrices } from "./agreements.ts";
import type { CatalogSnapshot, Model } from "./model.ts";

/** The account that requests the catalogue. */
export interface CatalogViewer {
	readonly id: string;
	readonly tags: readonly string[];
	/** Without it, list prices apply. */
	readonly prices?: AccountPrices | undefined;
}

/** True if the account can see the model. Null: no known account, as on public pages. */
export function isVisible({ visibleTo }: Pick<Model, "visibleTo">, account: CatalogViewer | null): boolean {
	if (visibleTo === undefined) return true;
	return account !== null && isNamed(visibleTo, account);
}

/** A separate function, because a closure would cost an object per call. */
function isNamed(names: readonly string[], { id, tags }: CatalogViewer): boolean {
	return names.some((name) => name === id || tags.includes(name));
}

/** The models that the account can see, at its prices, and the routes to them. */
export function visibleCatalog(
	snapshot: CatalogSnapshot,
	account: CatalogViewer | null,
	nowMs: number,
): CatalogSnapshot {
	const all = [...snapshot.models.values()];
	const models = all.filter((model) => isVisible(model, account));
	const prices = account?.prices;
	if (models.length === all.length && prices === undefined) return snapshot;
	const priced = (model: Model) => prices?.of(model, nowMs) ?? model;
	const routes = [...snapshot.routes.values()].flatMap((route) => {
		const [first, ...others] = route.models.filter((model) => isVisible(model, account)).map(priced);
		return first === undefined ? [] : [[route.id, { ...route, models: [first, ...others] as const }] as const];
	});
	return { ...snapshot, models: new Map(models.map((model) => [model.id, priced(model)])), routes: new Map(routes) };
}
