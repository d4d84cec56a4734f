import type { CatalogSnapshot, Model } from "./model.ts";

/** The model that a request names by its id or by an alias. */
export function findModel(snapshot: CatalogSnapshot, name: string): Model | undefined {
	const direct = snapshot.models.get(name);
	if (direct !== undefined) return direct;
	const id = snapshot.aliases.get(name);
	return id === undefined ? undefined : snapshot.models.get(id);
}

/** Why there is no such model, for whoever named it. */
export function notFoundText(snapshot: CatalogSnapshot, name: string): string {
	const retired = snapshot.retired.get(name);
	const why = retired ? `was retired on ${retired.on}` : "does not exist or is not connected";
	return `The model \`${name.slice(0, 128)}\` ${why}: see GET /v1/models.`;
}
