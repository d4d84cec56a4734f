import { createHmac, hkdfSync, randomUUID } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { createTickBarrier } from "../base/time-slice.ts";
import type { CatalogSnapshot, Model } from "../catalog/model.ts";
import type { ServiceLimits } from "../catalog/service-limits.ts";
import { type AnswerMemory, createAnswerMemory } from "./call/answer-memory.ts";
import { stoppingFailure } from "./call/failure.ts";
import { createOpenCalls } from "./call/guard.ts";
import type { FetchFunction } from "./call/post.ts";
import { sendWithReplays } from "./call/replay.ts";
import { ReplayedStream, type StreamCall } from "./call/stream.ts";
import type { AnswerStream, OutputChunk } from "./call/stream-wire.ts";
import { type CountedReply, type ReplicaReply, type UnaryCall, UnaryTries } from "./call/unary.ts";
import { createHealthMonitor } from "./replicas/health.ts";
import { createPool, type Pool } from "./replicas/pool.ts";
import { indexEntriesFor } from "./replicas/prefix-index.ts";
import { type RoutedPrompt, routedPrompt } from "./replicas/prompt-prefix.ts";
import { createReplica, isReplicaServing, type Replica, type ReplicaView } from "./replicas/replica.ts";

export type Upstreams = ReturnType<typeof createUpstreams>;

export function createUpstreams(
	deps: { clock: Clock; log: Log; fetch?: FetchFunction; answers?: AnswerMemory },
	options: {
		/** Read at each use, so that changed limits apply immediately. */
		limits(): ServiceLimits;
		/** Equal in all gateways, so that all prefer the same replica for a prompt that they do not know. */
		secret?: string;
	},
) {
	const { clock, log } = deps;
	const { limits } = options;
	const { seed, saltKey } = routingSecrets(options.secret ?? randomUUID());
	const callDeps = {
		clock,
		fetch: deps.fetch ?? (fetch as FetchFunction),
		openCalls: createOpenCalls(clock),
		answers: deps.answers ?? createAnswerMemory({ clock }, { limits }),
		tickBarrier: createTickBarrier(),
	};
	const pools = new Map<string, Pool>();
	const health = createHealthMonitor({ ...callDeps, log, changed: (modelId) => pools.get(modelId)?.wake() }, limits);

	/** Applies a catalogue. Replicas that remain keep their load, health and breaker. */
	function sync(snapshot: CatalogSnapshot): void {
		for (const [modelId, pool] of pools) {
			if (snapshot.models.has(modelId)) continue;
			pool.replace([]);
			pool.close();
			pools.delete(modelId);
		}
		for (const model of snapshot.models.values()) {
			let pool = pools.get(model.id);
			if (pool === undefined) {
				pool = createPool({ clock }, { limits });
				pools.set(model.id, pool);
			}
			pool.replace(replicasOf(model, [...pool.leaving(), ...pool.replicas()]));
		}
		shareIndexMemory();
		health.watch([...pools].flatMap(([modelId, pool]) => pool.replicas().map((replica) => ({ modelId, replica }))));
	}

	function replicasOf(model: Model, before: readonly Replica[]): Replica[] {
		const left = new Map(before.map((replica) => [addressOf(replica.spec()), replica]));
		const taken = new Set(before.map((replica) => replica.alias));
		return model.upstreams.map((spec, index) => {
			const known = left.get(addressOf(spec));
			if (known !== undefined) {
				left.delete(addressOf(spec));
				known.configure(spec);
				return known;
			}
			const alias = freeAlias(model.id, index, taken);
			return createReplica({ clock }, { modelId: model.id, alias, spec, limits });
		});
	}

	/** Divides the memory for prefix indexes equally among the replicas of models with several replicas. */
	function shareIndexMemory(): void {
		const routed = [...pools.values()].map((pool) => [...pool.replicas(), ...pool.leaving()]);
		const entries = indexEntriesFor(routed.filter((replicas) => replicas.length > 1).flat().length);
		for (const replicas of routed)
			for (const { prefill } of replicas) prefill.index.resize(replicas.length > 1 ? entries : 0);
	}

	function poolOf(model: Model): Pool {
		const pool = pools.get(model.id);
		if (pool !== undefined) return pool;
		throw new Fault("service_unavailable", "No server for this model is connected.", { retryAfterS: 5 });
	}

	return {
		sync,
		/** The prompt's hashes for the choice of a replica. With `isolatePrefixes`, they differ between accounts. */
		routed: (text: string, { isolatePrefixes }: Model, accountId: string, streamed: boolean): RoutedPrompt =>
			routedPrompt(text, isolatePrefixes === true ? Bun.hash.wyhash(accountId, seed) : seed, streamed),
		/** Secret that separates the account's prompts from others in a server's cache. */
		cacheSalt: (accountId: string): string => createHmac("sha256", saltKey).update(accountId).digest("base64url"),
		/** Opens a stream; sends in this step if a place is free. `next` rejects with a Fault or UpstreamFailure. */
		open: <Chunk extends OutputChunk>(model: Model, call: StreamCall<Chunk>): AnswerStream<Chunk> =>
			new ReplayedStream(callDeps, { pool: poolOf(model), log, limits: limits(), call }),
		/** Calls a replica, whose name is in the reply. Rejects with Fault (no place, no server) or UpstreamFailure. */
		call<Reply extends CountedReply>(model: Model, call: UnaryCall<Reply>): Promise<ReplicaReply<Reply>> {
			return sendWithReplays(poolOf(model), log, call.context, new UnaryTries(callDeps, limits, call));
		},
		/** True if a server would accept requests for the model; with `accountId`, requests of this account. */
		connected(modelId: string, accountId?: string): boolean {
			const replicas = pools.get(modelId)?.replicas() ?? [];
			return replicas.some((replica) =>
				accountId === undefined ? isReplicaServing(replica.view()) : replica.usable(accountId),
			);
		},
		wake: (modelId: string) => pools.get(modelId)?.wake(),
		/** Resolves with the number of free places for batch lines. Fault service_unavailable without a server. */
		async room(modelId: string, taken: () => number, signal: AbortSignal): Promise<number> {
			const pool = pools.get(modelId);
			if (pool === undefined) throw new Fault("service_unavailable", "No server for this model is connected.");
			return pool.room(taken, signal);
		},
		waiting: (): number => [...pools.values()].reduce((sum, pool) => sum + pool.waiting(), 0),
		/** True if requests for the model wait because all places are occupied. */
		contended: (modelId: string): boolean => pools.get(modelId)?.contended() ?? false,
		replicas: (): readonly ReplicaView[] =>
			[...pools.values()].flatMap((pool) => pool.replicas().map((replica) => replica.view())),
		/** Called when the process stops: waiting requests fail. Callers close their open streams. */
		letGo() {
			for (const pool of pools.values()) pool.close(stoppingFailure());
			callDeps.openCalls.letGo();
		},
		/** Ends the health checks and refuses waiting requests; callers close running calls. */
		async stop(): Promise<void> {
			await health.stop();
			for (const pool of pools.values()) pool.close();
		},
	};
}

function routingSecrets(secret: string) {
	const bytes = Buffer.from(hkdfSync("sha256", secret, "", "tollgate routing", 40));
	return { seed: bytes.readBigUInt64LE(), saltKey: bytes.subarray(8) };
}

/** Identifies a replica; its key and limits may change. */
function addressOf(spec: { url: string; model: string; dialect: string }): string {
	return JSON.stringify([spec.url, spec.model, spec.dialect]);
}

/** `<model>#<place>`, or the next free number, because log entries of two replicas must not share a name. */
function freeAlias(modelId: string, index: number, taken: Set<string>): string {
	let number = index;
	while (taken.has(`${modelId}#${number}`)) number += 1;
	const alias = `${modelId}#${number}`;
	taken.add(alias);
	return alias;
}
