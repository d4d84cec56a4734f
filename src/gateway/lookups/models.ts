import { Fault } from "../../base/fault.ts";
import { type CatalogSnapshot, findModel, type Model, type Route } from "../../catalog/model.ts";
import { openRouterPricing } from "../../catalog/rate-cards.ts";
import { type AllowedModels, checkModelAllowed, mayUseModel } from "../../keys/access.ts";
import { modelNotFound } from "../serve/model-for.ts";

type Connected = (modelId: string) => boolean;

/** GET /v1/models: the models that the key may use, also those without a connected server. */
export function listModels(snapshot: CatalogSnapshot, key: AllowedModels, connected: Connected) {
	const models = allowedOf([...snapshot.models.values()], key).map((model) => modelEntry(model, connected(model.id)));
	const routes = [...snapshot.routes.values()].flatMap((route) => routeEntry(route, key, connected) ?? []);
	return { object: "list", data: [...models, ...routes] };
}

/** GET /v1/models/{id}; slashes in the id may be percent-encoded. Faults: model_not_found, model_not_allowed. */
export function findModelEntry(snapshot: CatalogSnapshot, encodedId: string, key: AllowedModels, connected: Connected) {
	const id = decoded(encodedId);
	const route = snapshot.routes.get(id);
	const entry = route && routeEntry(route, key, connected);
	if (entry) return entry;
	const model = route?.models[0] ?? findModel(snapshot, id);
	if (!model) throw modelNotFound(snapshot, id);
	checkModelAllowed(key, model.id);
	return modelEntry(model, connected(model.id));
}

function allowedOf(models: readonly Model[], key: AllowedModels): readonly Model[] {
	return models.filter(({ id }) => mayUseModel(key, id));
}

function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch (cause) {
		throw new Fault("not_found", "The model ID in the URL is not encoded correctly.", { cause });
	}
}

/** A model in GET /v1/models: OpenAI's four fields, then OpenRouter's. */
function modelEntry(model: Model, connected: boolean) {
	return {
		id: model.id,
		object: "model",
		created: model.createdS,
		owned_by: ownerOf(model.id),
		name: model.name,
		kind: model.kind,
		context_length: model.contextLength,
		max_output_tokens: model.maxOutputTokens,
		supported_parameters: [...model.parameters],
		modes: model.batch === undefined ? [...model.modes] : [...model.modes, "batch"],
		architecture: architectureOf([...model.inputModalities], [...model.outputModalities]),
		/** Prices as decimal strings, in US dollars per unit. */
		pricing: openRouterPricing([model.rateCard]),
		...(model.batch === undefined
			? {}
			: { batch_pricing: openRouterPricing([model.batch.rateCard ?? model.rateCard]) }),
		rate_card: model.rateCard.id,
		/** First day (UTC) without the model, `2027-01-31`; null if the model has no such day. */
		expiration_date: model.retiresOn ?? null,
		status: connected ? "connected" : "unavailable",
	};
}

/** A route in GET /v1/models: highest limits and prices, and common parameters, of the models that the key may use. */
function routeEntry(route: Route, key: AllowedModels, connected: Connected) {
	const { id, name, by } = route;
	const models = allowedOf(route.models, key);
	if (models.length === 0) return undefined;
	const entries = models.map((model) => modelEntry(model, connected(model.id)));
	const all = (values: (entry: ReturnType<typeof modelEntry>) => readonly string[]) => [
		...new Set(entries.flatMap(values)),
	];
	const { batch_pricing: _, ...first } = entries[0] as (typeof entries)[number];
	return {
		...first,
		id,
		name,
		created: Math.max(...entries.map(({ created }) => created)),
		owned_by: ownerOf(id),
		context_length: Math.max(...entries.map(({ context_length }) => context_length)),
		max_output_tokens: Math.max(...entries.map(({ max_output_tokens }) => max_output_tokens)),
		supported_parameters: first.supported_parameters.filter((name) =>
			models.every((model) => model.parameters.has(name)),
		),
		modes: all(({ modes }) => modes),
		architecture: architectureOf(
			all(({ architecture }) => architecture.input_modalities),
			all(({ architecture }) => architecture.output_modalities),
		),
		pricing: openRouterPricing(models.map(({ rateCard }) => rateCard)),
		rate_card: null,
		expiration_date: lastDay(models),
		status: entries.some(({ status }) => status === "connected") ? "connected" : "unavailable",
		route: { models: models.map((model) => model.id), by },
	};
}

const ownerOf = (id: string): string => (id.includes("/") ? (id.split("/")[0] as string) : "tollgate");

function architectureOf(input: readonly string[], output: readonly string[]) {
	return { modality: `${input.join("+")}->${output.join("+")}`, input_modalities: input, output_modalities: output };
}

function lastDay(models: readonly Model[]): string | null {
	const days = models.flatMap(({ retiresOn }) => retiresOn ?? []);
	return days.length < models.length ? null : (days.toSorted().at(-1) ?? null);
}
