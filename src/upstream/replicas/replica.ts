import type { Clock } from "../../base/clock.ts";
import type { DialectName, UpstreamSpec } from "../../catalog/model.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import { DIALECTS, type Dialect } from "../dialects.ts";
import { type BreakerState, createBreaker } from "./breaker.ts";

export type ReplicaHealth = "unknown" | "up" | "down";

/** How a call went, as far as it speaks of the replica. `neutral`: the client left, or its request was refused. */
export type CallOutcome = "ok" | "failed" | "neutral";

/** One address that serves one model: its load, health and breaker. */
export interface Replica {
	/** `<model id>#<place in the list>`: the name for logs and metrics, which tells no address. */
	readonly alias: string;
	readonly dialect: Dialect;
	spec(): UpstreamSpec;
	/** Takes changed settings of the same address. */
	configure(spec: UpstreamSpec): void;
	/** Whether it may take calls at all, full or not. */
	usable(): boolean;
	/** Whether it may take one more call now. */
	hasPlace(): boolean;
	inFlight(): number;
	/** Calls it may have at once now: fewer while it recovers, one while its breaker tries it out. */
	capacity(): number;
	/** Counts a call in; the number goes back to `firstEvent` and `end`. */
	begin(): number;
	/** The call got its first event: enough to close a breaker that is trying the replica out. */
	firstEvent(call: number): void;
	/** Counts the call out. Exactly once a call. */
	end(call: number, outcome: CallOutcome): void;
	health(): ReplicaHealth;
	setHealth(health: "up" | "down"): void;
	/** Out of the catalogue: calls under way go on, new ones do not come. */
	drain(): void;
	coolMsLeft(): number;
	view(): ReplicaView;
}

/** For status pages and metrics. */
export interface ReplicaView {
	readonly alias: string;
	readonly modelId: string;
	/** For operators only. */
	readonly url: string;
	readonly dialect: DialectName;
	readonly health: ReplicaHealth;
	readonly breaker: BreakerState;
	readonly inFlight: number;
	readonly maxConcurrency: number;
	readonly draining: boolean;
}

/** A replica that comes back takes its full load only after this time, so that cold caches do not break it again. */
const SLOW_START_MS = 10_000;
const SLOW_START_SHARE_MIN = 0.1;

export function createReplica(
	deps: { clock: Clock },
	options: { modelId: string; alias: string; spec: UpstreamSpec; limits: ServiceLimits },
): Replica {
	const { clock } = deps;
	const { alias, modelId } = options;
	const breaker = createBreaker(clock, options.limits);
	const dialect = DIALECTS[options.spec.dialect];
	let spec = options.spec;
	let inFlight = 0;
	let health: ReplicaHealth = "unknown";
	let draining = false;
	/** Undefined outside a slow start. */
	let recoveredAtMs: number | undefined;

	function capacity(): number {
		if (recoveredAtMs === undefined) return spec.maxConcurrency;
		const share = (clock.monotonicMs() - recoveredAtMs) / SLOW_START_MS;
		if (share >= 1) {
			recoveredAtMs = undefined;
			return spec.maxConcurrency;
		}
		return Math.max(1, Math.floor(spec.maxConcurrency * Math.max(share, SLOW_START_SHARE_MIN)));
	}

	return {
		alias,
		dialect,
		spec: () => spec,
		configure(changed) {
			spec = changed;
		},
		usable: () => !draining && health !== "down" && breaker.state() !== "open",
		hasPlace: () => !draining && health !== "down" && breaker.allows() && inFlight < capacity(),
		inFlight: () => inFlight,
		capacity,
		begin() {
			inFlight += 1;
			return breaker.begin();
		},
		firstEvent(call) {
			if (breaker.state() !== "half_open") return;
			breaker.succeeded(call);
			recoveredAtMs = clock.monotonicMs();
		},
		end(call, outcome) {
			inFlight -= 1;
			if (outcome === "ok") breaker.succeeded(call);
			else if (outcome === "failed") breaker.failed(call);
			else breaker.neutral(call);
		},
		health: () => health,
		setHealth(next) {
			if (next === "up" && health === "down") recoveredAtMs = clock.monotonicMs();
			health = next;
		},
		drain() {
			draining = true;
		},
		coolMsLeft: breaker.coolMsLeft,
		view: () => ({
			alias,
			modelId,
			url: spec.url,
			dialect: spec.dialect,
			health,
			breaker: breaker.state(),
			inFlight,
			maxConcurrency: spec.maxConcurrency,
			draining,
		}),
	};
}
