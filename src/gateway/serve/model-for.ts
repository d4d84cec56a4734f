import { Fault } from "../../base/fault.ts";
import type { CatalogSnapshot, ChatMode, Model, ModelKind, Route } from "../../catalog/model.ts";
import { findModel, notFoundText } from "../../catalog/model.ts";
import { type CatalogViewer, isVisible } from "../../catalog/visibility.ts";

export interface EndpointRequirement {
	readonly kind: ModelKind;
	readonly mode?: ChatMode;
}

/** Fault service_unavailable if no model serves this kind of endpoint. Chat endpoints always pass. */
export function assertServed(snapshot: CatalogSnapshot, { kind }: EndpointRequirement, account: CatalogViewer): void {
	if (kind === "chat") return;
	for (const model of snapshot.models.values()) if (model.kind === kind && isVisible(model, account)) return;
	// Passes if a retired model has this kind, because `resolveModel` then gives a more precise error.
	for (const retired of snapshot.retired.values()) if (retired.kind === kind) return;
	throw new Fault("service_unavailable", "No model for this endpoint is available.");
}

/** Returns the model that a request names. Faults: as `assertServed`, model_not_found, unsupported_mode. */
export function resolveModel(
	snapshot: CatalogSnapshot,
	name: string,
	endpoint: EndpointRequirement,
	account: CatalogViewer,
): Model {
	assertServed(snapshot, endpoint, account);
	const model = findModel(snapshot, name);
	if (!model || !isVisible(model, account)) throw modelNotFound(snapshot, name);
	assertServesEndpoint(endpoint, model);
	return model;
}

/** The route of this name, if the account sees at least one of its models. */
export function findRoute(snapshot: CatalogSnapshot, name: string, account: CatalogViewer): Route | undefined {
	const route = snapshot.routes.get(name);
	if (route === undefined) return undefined;
	for (const model of route.models) if (isVisible(model, account)) return route;
	return undefined;
}

export function servesEndpoint({ kind, mode }: EndpointRequirement, model: Model): boolean {
	return model.kind === kind && (mode === undefined || model.modes.has(mode));
}

export function assertServesEndpoint(endpoint: EndpointRequirement, model: Model): void {
	if (!servesEndpoint(endpoint, model))
		throw new Fault("unsupported_mode", unsupportedText(model, endpoint.mode), { param: "model" });
}

/** The model with its batch rates. Fault service_unavailable if the model has none. */
export function withBatchRates(model: Model): Model {
	if (model.batch === undefined)
		throw new Fault(
			"service_unavailable",
			`The model \`${model.id}\` does not support batches. Choose one with the mode \`batch\` at GET /v1/models.`,
			{ retryAfterS: 60 },
		);
	return model.batch.rateCard === null ? model : { ...model, rateCard: model.batch.rateCard };
}

function unsupportedText({ id }: Model, mode: ChatMode | undefined): string {
	if (mode === undefined) return `The model \`${id}\` does not support this endpoint.`;
	const endpoint = mode === "chat" ? "chat completions" : "completions";
	return `The model \`${id}\` does not support ${endpoint}: see \`modes\` at GET /v1/models.`;
}

export function modelNotFound(snapshot: CatalogSnapshot, name: string): Fault {
	return new Fault("model_not_found", [notFoundText(snapshot, name)], { param: "model" });
}
