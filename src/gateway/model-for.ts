import { Fault } from "../base/fault.ts";
import { findModel } from "../catalog/find-model.ts";
import type { CatalogSnapshot, ChatMode, Model, ModelKind } from "../catalog/model.ts";

/** The deployment that a chat or a completion names. Faults: model_not_found, unsupported_mode. */
export function modelFor(snapshot: CatalogSnapshot, name: string, mode: ChatMode): Model {
	const model = findModel(snapshot, name);
	if (!model) throw modelNotFound(name);
	if (model.kind === "chat" && model.modes.has(mode)) return model;
	const endpoint = mode === "chat" ? "chat completions" : "completions";
	throw new Fault(
		"unsupported_mode",
		`The model \`${model.id}\` does not serve ${endpoint}: see \`modes\` at GET /v1/models.`,
		{ param: "model" },
	);
}

/** The deployment of another kind. Faults: service_unavailable if there is none of it at all, model_not_found, unsupported_mode. */
export function modelOfKind(snapshot: CatalogSnapshot, name: string, kind: ModelKind): Model {
	assertKind(snapshot, kind);
	const model = findModel(snapshot, name);
	if (!model) throw modelNotFound(name);
	if (model.kind !== kind)
		throw new Fault("unsupported_mode", `The model \`${model.id}\` does not serve this endpoint.`, { param: "model" });
	return model;
}

/** Fault service_unavailable if there is no deployment of this kind at all, whatever the request says. */
export function assertKind(snapshot: CatalogSnapshot, kind: ModelKind): void {
	for (const model of snapshot.models.values()) if (model.kind === kind) return;
	throw new Fault("service_unavailable", "No deployment for this operation is available.");
}

export function modelNotFound(name: string): Fault {
	return new Fault(
		"model_not_found",
		`The model \`${name.slice(0, 128)}\` does not exist or is not connected: see GET /v1/models.`,
		{ param: "model" },
	);
}
