import type { CatalogSnapshot, Model } from "../catalog/model.ts";
import { type ReplicaView, takesCalls } from "../upstream/replicas/replica.ts";
import type { ServiceName } from "./status-answer.ts";
import type { ServiceLevel } from "./status-store.ts";

type Replica = Pick<ReplicaView, "modelId" | "health" | "breaker" | "draining">;

/** Names of the history's subjects. */
export const SERVICE_SUBJECT = "service";
export const endpointSubject = (name: ServiceName) => `endpoint:${name}`;
export const modelSubject = (modelId: string) => `model:${modelId}`;

/**
 * Levels that a request would find at this instance now: of the service, each kind of endpoint and each model. A model
 * is degraded while some of its servers are down or refused by the breaker; a kind, or the service, while some model is
 * not operational. If this instance admits no requests, everything is down. Models whose servers were not checked yet
 * are missing.
 */
export function statusLevels(snapshot: CatalogSnapshot, replicas: readonly Replica[], admitting: boolean) {
	const takesByModel = new Map<string, boolean[]>();
	for (const replica of replicas) {
		const { modelId, health, draining } = replica;
		if (draining || health === "unknown") continue;
		const takes = takesByModel.get(modelId) ?? [];
		takes.push(takesCalls(replica));
		takesByModel.set(modelId, takes);
	}
	const levels = new Map<string, ServiceLevel>();
	const all: ServiceLevel[] = [];
	const byEndpoint = new Map<ServiceName, ServiceLevel[]>();
	for (const model of snapshot.models.values()) {
		const takes = takesByModel.get(model.id);
		if (takes === undefined) continue;
		const level = admitting ? levelOf(takes.filter(Boolean).length, takes.length) : "down";
		levels.set(modelSubject(model.id), level);
		all.push(level);
		for (const name of modelEndpoints(model)) byEndpoint.set(name, [...(byEndpoint.get(name) ?? []), level]);
	}
	for (const [name, parts] of byEndpoint) levels.set(endpointSubject(name), together(parts));
	if (!admitting) levels.set(SERVICE_SUBJECT, "down");
	else if (all.length > 0) levels.set(SERVICE_SUBJECT, together(all));
	return levels;
}

export function modelEndpoints(model: Pick<Model, "kind" | "modes">): readonly ServiceName[] {
	switch (model.kind) {
		case "chat":
			return [...model.modes];
		case "embedding":
			return ["embeddings"];
		case "image":
			return ["image_generation"];
		case "transcription":
		case "rerank":
			return [model.kind];
	}
}

function together(parts: readonly ServiceLevel[]): ServiceLevel {
	if (parts.every((part) => part === "operational")) return "operational";
	return parts.every((part) => part === "down") ? "down" : "degraded";
}

function levelOf(working: number, of: number): ServiceLevel {
	if (working === of) return "operational";
	return working === 0 ? "down" : "degraded";
}
