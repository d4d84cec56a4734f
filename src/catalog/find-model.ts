import type { Text } from "../base/translate.ts";
import type { CatalogSnapshot, Model } from "./model.ts";

/** Finds a model by its id or an alias. */
export function findModel(snapshot: CatalogSnapshot, name: string): Model | undefined {
	const direct = snapshot.models.get(name);
	if (direct !== undefined) return direct;
	const id = snapshot.aliases.get(name);
	return id === undefined ? undefined : snapshot.models.get(id);
}

/** The text for a client that named a model that does not exist. */
export function notFoundText(snapshot: CatalogSnapshot, name: string): Text {
	const id = name.slice(0, 128);
	const day = snapshot.retired.get(name)?.on;
	return day === undefined
		? { id: "The model `{id}` does not exist or is not connected: see GET /v1/models.", values: { id } }
		: { id: "The model `{id}` was retired on {day}: see GET /v1/models.", values: { id, day } };
}
