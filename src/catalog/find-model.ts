import type { CatalogSnapshot, Model } from "./model.ts";

/** The model that a request names by its id or by an alias. */
export function findModel(snapshot: CatalogSnapshot, name: string): Model | undefined {
	const direct = snapshot.models.get(name);
	if (direct !== undefined) return direct;
	const id = snapshot.aliases.get(name);
	return id === undefined ? undefined : snapshot.models.get(id);
}
