import type { Reading } from "./metrics.ts";

export interface ReplicaState {
	readonly alias: string;
	readonly modelId: string;
	readonly health: string;
	readonly breaker: string;
	readonly inFlight: number;
	readonly maxConcurrency: number;
}

/**
 * The most replicas with their own series. A model has series for all of its replicas or for none, so that sums are
 * right.
 */
const REPLICAS_MAX = 1_000;

const isUp = ({ health }: ReplicaState) => health !== "down";
const isOpen = ({ breaker }: ReplicaState) => breaker !== "closed";
const isWell = (replica: ReplicaState) => isUp(replica) && !isOpen(replica);

/** The state of each replica. If there are too many, models in trouble come first. */
export function replicaReadings(replicas: () => readonly ReplicaState[]): Reading[] {
	const gauge = (name: string, help: string, pick: (replica: ReplicaState) => number): Reading => ({
		name: `tollgate_replica_${name}`,
		help,
		labels: ["replica", "model"],
		read: () =>
			shown(replicas()).map((replica) => ({
				labels: { replica: replica.alias, model: replica.modelId },
				value: pick(replica),
			})),
	});
	return [
		gauge("up", "1 unless the replica is known to be down.", (replica) => Number(isUp(replica))),
		gauge("breaker_open", "1 while the breaker keeps traffic away.", (replica) => Number(isOpen(replica))),
		gauge("places", "Calls that the replica takes at once.", ({ maxConcurrency }) => maxConcurrency),
		gauge("in_flight", "Calls under way.", ({ inFlight }) => inFlight),
		{
			name: "tollgate_replicas",
			help: "Replicas of all models: up or down, and among those up the ones whose breaker is open.",
			labels: ["state"],
			read: () => {
				const all = replicas();
				const up = all.filter(isUp);
				return [
					{ labels: { state: "up" }, value: up.length },
					{ labels: { state: "down" }, value: all.length - up.length },
					{ labels: { state: "breaker_open" }, value: up.filter(isOpen).length },
				];
			},
		},
	];
}

/** Whole models while there is room, those in trouble first. */
function shown(replicas: readonly ReplicaState[]): readonly ReplicaState[] {
	if (replicas.length <= REPLICAS_MAX) return replicas;
	const models = [...Map.groupBy(replicas, ({ modelId }) => modelId).values()];
	const chosen: ReplicaState[] = [];
	const inOrder = [...models.filter((model) => !model.every(isWell)), ...models.filter((model) => model.every(isWell))];
	for (const model of inOrder) if (chosen.length + model.length <= REPLICAS_MAX) chosen.push(...model);
	return chosen;
}
