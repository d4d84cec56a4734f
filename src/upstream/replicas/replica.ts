import type { Clock } from "../../base/clock.ts";
import type { DialectName, UpstreamSpec } from "../../catalog/model.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import { findDialect } from "../dialects.ts";
import type { ReportedUsage } from "../usage.ts";
import { type BreakerCall, type BreakerState, createBreaker } from "./breaker.ts";
import type { CallOutcome } from "./call-outcomes.ts";
import { createOutputEstimator } from "./output-estimator.ts";
import { createPrefill } from "./prefill.ts";

export type ReplicaHealth = "unknown" | "up" | "down";

export type Replica = ReturnType<typeof createReplica>;

export interface ReplicaView {
	readonly alias: string;
	readonly modelId: string;
	/** Address of the server, which only operators see. */
	readonly url: string;
	readonly dialect: DialectName;
	readonly health: ReplicaHealth;
	readonly breaker: BreakerState;
	readonly inFlight: number;
	readonly maxConcurrency: number;
	readonly draining: boolean;
	/** Calls since the start that the server refused because of the gateway's key, credit or model name. */
	readonly refused: number;
	/** Answers since the start whose usage record contradicts itself. */
	readonly contradictions: number;
	/** Prompt tokens since the start that the server reported, and the part of them from its cache. */
	readonly promptTokens: number;
	readonly cachedTokens: number;
	/** Estimated milliseconds until the server starts another prompt. */
	readonly waitMs: number;
}

/** True if requests are sent to the replica, as shown to customers. */
export function isReplicaServing({
	health,
	breaker,
	draining,
}: Pick<ReplicaView, "health" | "breaker" | "draining">): boolean {
	return !draining && health !== "down" && breaker !== "open";
}

/** A model server for one model, with its load, health and breaker. */
export function createReplica(
	deps: { clock: Clock },
	options: { modelId: string; alias: string; spec: UpstreamSpec; limits: () => ServiceLimits },
) {
	const { clock } = deps;
	const { alias, modelId } = options;
	let server = { spec: options.spec, dialect: findDialect(options.spec) };
	const counts = { refused: 0, contradictions: 0, promptTokens: 0, cachedTokens: 0 };
	const prefill = createPrefill(clock);
	let inFlight = 0;
	/** "declared_down": the replica itself reported that it is down. */
	let health: ReplicaHealth | "declared_down" = "unknown";
	const isDown = () => health === "down" || health === "declared_down";
	let answeredAtMs: number | undefined;
	const breaker = createBreaker(clock, options.limits, () => health === "up");
	const lastResort = createLastResort(clock);
	let draining = false;

	const capacity = () => server.spec.maxConcurrency;
	const shownHealth = () => (health === "declared_down" ? "down" : health);
	const takes = () => !draining && !isDown() && breaker.state() !== "open";
	const allows = (accountId: string) => !isDown() && breaker.allows(accountId);

	/** Sets the health. `speaks`: the replica itself reported it, so an answered request disproves it. */
	function setHealth(next: "up" | "down", speaks = false): void {
		if (next === "down" && !isDown()) lastResort.doubted();
		health = next === "down" && speaks ? "declared_down" : next;
	}

	function noteAnswer(): void {
		answeredAtMs = clock.monotonicMs();
		if (health === "declared_down") setHealth("up");
	}

	return {
		/** Name in logs and metrics, `<model id>#<index in the list>`, which does not reveal the address. */
		alias,
		aliasHash: Number(Bun.hash.wyhash(alias) & 0xffff_ffffn),
		/** Estimates when the replica starts a prompt; used only if the model has several replicas. */
		prefill,
		get dialect() {
			return server.dialect;
		},
		spec: (): UpstreamSpec => server.spec,
		/** Applies changed settings of the same address. */
		configure(changed: UpstreamSpec) {
			server = { spec: changed, dialect: findDialect(changed) };
		},
		/** True if it serves at least some accounts, even if it is full now. */
		takesCalls: takes,
		/** True if it may serve this account, even if it is full now. */
		usable: (accountId: string): boolean => takes() && breaker.coolMsLeft(accountId) === 0,
		/** True if it may get one more call of this account now. */
		hasPlace: (accountId: string): boolean => !draining && allows(accountId) && inFlight < capacity(),
		/** True if it may get one more call despite its state, because no other replica is available. */
		isLastResort: (): boolean => !draining && health !== "down" && inFlight < capacity() && lastResort.isDue(),
		inFlight: (): number => inFlight,
		/** Limit of concurrent calls. While the breaker tries the replica, `hasPlace` allows fewer. */
		capacity,
		/** Adds a call. Pass the result to `answered` and `end`. */
		begin(accountId: string): BreakerCall {
			inFlight += 1;
			if (!allows(accountId)) lastResort.begun();
			return breaker.begin(accountId);
		},
		/** Call it for each event of a call; the first event closes a half-open breaker. */
		answered(call: BreakerCall) {
			noteAnswer();
			if (breaker.state() === "half_open") breaker.end(call, "ok");
		},
		/** Removes a call; must be called exactly once per call. */
		end(call: BreakerCall, outcome: CallOutcome) {
			inFlight -= 1;
			if (outcome === "ok") noteAnswer();
			else if (outcome === "neutral") lastResort.left();
			else lastResort.doubted();
			breaker.end(call, outcome);
		},
		/** Counts a refusal that the operator must fix. */
		noteRefusal() {
			counts.refused += 1;
		},
		noteUsage(usage: ReportedUsage | undefined) {
			if (usage === undefined) return;
			if (usage.contradicts) counts.contradictions += 1;
			counts.promptTokens += usage.promptTokens ?? 0;
			counts.cachedTokens += usage.cachedTokens;
		},
		/** True if the server has ever reported cached tokens. */
		tellsCached: (): boolean => counts.cachedTokens > 0,
		/** Judges a call that ended as `suspect`. */
		judge: breaker.judge,
		otherFailureAtMs: breaker.otherFailureAtMs,
		/** Monotonic time of the last answer to a request; undefined without one. */
		answeredAtMs: (): number | undefined => answeredAtMs,
		outputEstimator: createOutputEstimator(),
		health: shownHealth,
		setHealth,
		/** Removes it from the catalogue: running calls continue, new calls are refused. */
		drain() {
			draining = true;
		},
		/** Adds it to the catalogue again, with the calls that are still running. */
		takeBack() {
			draining = false;
		},
		coolMsLeft: breaker.coolMsLeft,
		view: (): ReplicaView => ({
			alias,
			modelId,
			url: server.spec.url,
			dialect: server.spec.dialect,
			health: shownHealth(),
			breaker: breaker.shown(),
			inFlight,
			maxConcurrency: capacity(),
			draining,
			waitMs: Math.round(prefill.waitMs()),
			...counts,
		}),
	};
}

/** Pause after the last failure, or after a call without a verdict. */
const PAUSE_MS = 1_000;
const ALONE_MS = 5_000;

/** Spaces calls to a failing replica if no other is available, so that a recovering server is not flooded. */
function createLastResort(clock: Clock) {
	let dueAtMs = 0;
	return {
		/** Call it when a failure or the health check makes the replica doubtful. */
		doubted() {
			dueAtMs = clock.monotonicMs() + PAUSE_MS;
		},
		isDue: (): boolean => clock.monotonicMs() >= dueAtMs,
		/** Call it when a call starts: the next call waits for its end, or for ALONE_MS. */
		begun() {
			dueAtMs = clock.monotonicMs() + ALONE_MS;
		},
		// Never moves the time back: clients that disconnect repeatedly would block all others.
		/** Call it when a call ends without a verdict, because its client disconnected. */
		left() {
			dueAtMs = Math.min(dueAtMs, clock.monotonicMs() + PAUSE_MS);
		},
	};
}
