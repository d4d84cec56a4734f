import { Fault } from "../../base/fault.ts";
import { findModel } from "../../catalog/find-model.ts";
import type { CatalogSnapshot, Model, Route, RouteOrder } from "../../catalog/model.ts";
import { pricingOf } from "../../catalog/pricing.ts";
import { modelNotFound } from "../serve/model-for.ts";

/** A model in GET /v1/models: OpenAI's four fields, then those of aggregators. */
export interface ModelEntry {
	readonly id: string;
	readonly object: "model";
	readonly created: number;
	readonly owned_by: string;
	readonly name: string;
	readonly kind: string;
	readonly context_length: number;
	readonly max_output_tokens: number;
	readonly supported_parameters: readonly string[];
	readonly modes: readonly string[];
	readonly architecture: {
		readonly modality: string;
		readonly input_modalities: readonly string[];
		readonly output_modalities: readonly string[];
	};
	/** Decimal strings, US dollars per unit. */
	readonly pricing: Readonly<Record<string, string>>;
	/** Prices of batch lines; absent if the model takes none. */
	readonly batch_pricing?: Readonly<Record<string, string>>;
	readonly rate_card: string;
	/** `2027-01-31`: not served from the beginning of that day (UTC); null if unset. */
	readonly expiration_date: string | null;
	/** Whether a server is connected now. */
	readonly status: "connected" | "unavailable";
}

/**
 * A route: a name for several models. It shows the maximum of their limits and prices, and the parameters that all
 * honour.
 */
export interface RouteEntry extends Omit<ModelEntry, "rate_card" | "batch_pricing"> {
	readonly rate_card: null;
	readonly route: { readonly models: readonly string[]; readonly by: RouteOrder };
}

/** GET /v1/models: listed models, connected or not. */
export function listModels(
	snapshot: CatalogSnapshot,
	connected: (modelId: string) => boolean,
): { object: "list"; data: (ModelEntry | RouteEntry)[] } {
	const models = [...snapshot.models.values()].map((model) => modelEntry(model, connected(model.id)));
	const routes = [...snapshot.routes.values()].map((route) => routeEntry(route, connected));
	return { object: "list", data: [...models, ...routes] };
}

/** GET /v1/models/{id}; the id may contain slashes, raw or percent-encoded. Fault model_not_found. */
export function findModelEntry(
	snapshot: CatalogSnapshot,
	encodedId: string,
	connected: (modelId: string) => boolean,
): ModelEntry | RouteEntry {
	const id = decoded(encodedId);
	const route = snapshot.routes.get(id);
	if (route) return routeEntry(route, connected);
	const model = findModel(snapshot, id);
	if (!model) throw modelNotFound(snapshot, id);
	return modelEntry(model, connected(model.id));
}

function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch (cause) {
		throw new Fault("not_found", "The model's ID is not a valid part of an address.", { cause });
	}
}

function modelEntry(model: Model, connected: boolean): ModelEntry {
	const input = [...model.inputModalities];
	const output = [...model.outputModalities];
	return {
		id: model.id,
		object: "model",
		created: model.createdS,
		owned_by: model.id.includes("/") ? (model.id.split("/")[0] as string) : "tollgate",
		name: model.name,
		kind: model.kind,
		context_length: model.contextLength,
		max_output_tokens: model.maxOutputTokens,
		supported_parameters: [...model.parameters],
		modes: model.batch === undefined ? [...model.modes] : [...model.modes, "batch"],
		architecture: {
			modality: `${input.join("+")}->${output.join("+")}`,
			input_modalities: input,
			output_modalities: output,
		},
		pricing: pricingOf([model.rateCard]),
		...(model.batch === undefined ? {} : { batch_pricing: pricingOf([model.batch.rateCard ?? model.rateCard]) }),
		rate_card: model.rateCard.id,
		expiration_date: model.retiresOn ?? null,
		status: connected ? "connected" : "unavailable",
	};
}

function routeEntry(route: Route, connected: (modelId: string) => boolean): RouteEntry {
	const { id, name, models, by } = route;
	const entries = models.map((model) => modelEntry(model, connected(model.id)));
	const all = (values: (entry: ModelEntry) => readonly string[]) => [...new Set(entries.flatMap(values))];
	const input = all(({ architecture }) => architecture.input_modalities);
	const output = all(({ architecture }) => architecture.output_modalities);
	const modalities = { modality: `${input.join("+")}->${output.join("+")}`, input_modalities: input };
	const { batch_pricing: _, ...first } = entries[0] as ModelEntry;
	return {
		...first,
		id,
		name,
		created: Math.max(...entries.map(({ created }) => created)),
		owned_by: id.includes("/") ? (id.split("/")[0] as string) : "tollgate",
		context_length: Math.max(...entries.map(({ context_length }) => context_length)),
		max_output_tokens: Math.max(...entries.map(({ max_output_tokens }) => max_output_tokens)),
		supported_parameters: [...models[0].parameters].filter((name) =>
			models.every((model) => model.parameters.has(name)),
		),
		modes: all(({ modes }) => modes),
		architecture: { ...modalities, output_modalities: output },
		pricing: pricingOf(models.map(({ rateCard }) => rateCard)),
		rate_card: null,
		// A route is connected if one of its models is.
		expiration_date: lastDay(models),
		status: entries.some(({ status }) => status === "connected") ? "connected" : "unavailable",
		route: { models: models.map((model) => model.id), by },
	};
}

function lastDay(models: readonly Model[]): string | null {
	const days = models.flatMap(({ retiresOn }) => retiresOn ?? []);
	return days.length < models.length ? null : (days.toSorted().at(-1) ?? null);
}
