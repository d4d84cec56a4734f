import type { CatalogSnapshot, Model } from "../catalog/model.ts";
import { isReplicaServing, type ReplicaView } from "../upstream/replicas/replica.ts";
import type { HistoryAnswer, ServiceName, UptimeDay, UptimeTrack } from "./status-answer.ts";
import { type DayMinutes, HISTORY_DAYS, type HistoryView, type ServiceLevel } from "./status-history.ts";

type Replica = Pick<ReplicaView, "modelId" | "health" | "breaker" | "draining">;

/** Names of the history's subjects. */
const SERVICE_SUBJECT = "service";
const endpointSubject = (name: ServiceName) => `endpoint:${name}`;
const modelSubject = (modelId: string) => `model:${modelId}`;

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
		takes.push(isReplicaServing(replica));
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

function modelEndpoints(model: Pick<Model, "kind" | "modes">): readonly ServiceName[] {
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

const DAY_MS = 86_400_000;

/** Response with the history. `today`: days since 1970. Omits subjects that are no longer in the catalogue. */
export function historyAnswer(view: HistoryView, snapshot: CatalogSnapshot, today: number): HistoryAnswer {
	const oldest = today - HISTORY_DAYS + 1;
	const track = (subject: string) => trackOf(view.subjects.get(subject), oldest, today);
	const models = [...snapshot.models.values()];
	const offered = new Set(models.flatMap(modelEndpoints));
	return {
		as_of: view.readAtMs === undefined ? null : new Date(view.readAtMs).toISOString(),
		from: isoDateOfDay(oldest),
		to: isoDateOfDay(today),
		service: track(SERVICE_SUBJECT),
		services: Object.fromEntries([...offered].map((name) => [name, track(endpointSubject(name))])),
		models: models.map(({ id }) => ({ id, ...track(modelSubject(id)) })),
	};
}

/** A date such as `2026-11-21`; `day` counts days since 1970. */
export const isoDateOfDay = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10);

/** Percentage with two decimals, rounded down, so that 100 means all. */
export const percentFloor = (part: number, whole: number): number => Math.floor((part * 10_000) / whole) / 100;

function trackOf(tallies: ReadonlyMap<number, DayMinutes> | undefined, oldest: number, today: number): UptimeTrack {
	const days: UptimeDay[] = [];
	let up = 0;
	let observed = 0;
	for (let day = oldest; day <= today; day += 1) {
		const tally = tallies?.get(day);
		if (tally === undefined) continue;
		up += tally.operational + tally.degraded;
		observed += tally.operational + tally.degraded + tally.down;
		days.push({
			date: isoDateOfDay(day),
			operational_minutes: tally.operational,
			degraded_minutes: tally.degraded,
			down_minutes: tally.down,
		});
	}
	return { uptime_percent: observed === 0 ? null : percentFloor(up, observed), days };
}
