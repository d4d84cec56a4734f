import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import { isRefused } from "../call/failure.ts";
import type { FetchFunction } from "../call/post.ts";
import type { Replica, ReplicaHealth } from "./replica.ts";

interface Watch {
	readonly modelId: string;
	readonly replica: Replica;
	failuresInRow: number;
	/** Health that was last written to the log. */
	told: ReplicaHealth;
	/** True if the replica declared itself down but answered a request. Its declaration is ignored until it says up. */
	isWrong: boolean;
	cancelTimer: () => void;
	stopped: boolean;
	question: { abort: AbortController; done: Promise<void> } | undefined;
}

const PROBE_DEADLINE_MS = 2_000;
/** Consecutive failed checks after which a replica counts as down. A refused connection suffices alone. */
const FAILURES_TO_BE_DOWN = 2;
/** Random part of the interval, so that instances do not check at the same time. */
const JITTER_SHARE = 0.2;

/** Sends health requests periodically to replicas without recent answers, and marks replicas up or down. */
export function createHealthMonitor(
	deps: { clock: Clock; log: Log; fetch: FetchFunction; changed: (modelId: string) => void },
	limits: () => Pick<ServiceLimits, "healthIntervalMs">,
) {
	const { clock, log } = deps;
	let watches: Watch[] = [];

	async function probe(watch: Watch, signal: AbortSignal): Promise<void> {
		const { replica } = watch;
		const answered = answers(replica);
		const verdict = answered ? "up" : await ask(deps.fetch, replica, signal);
		if (watch.stopped) return;
		if (watch.told === "down" && replica.health() === "up") watch.isWrong = true;
		if (verdict === "up" && !answered) watch.isWrong = false;
		const isWell = verdict === "up" || (verdict === "failing" && watch.isWrong);
		watch.failuresInRow = isWell ? 0 : watch.failuresInRow + 1;
		const down = verdict === "refused" || watch.failuresInRow >= FAILURES_TO_BE_DOWN;
		const next = isWell ? "up" : down ? "down" : replica.health();
		tell(watch, next, verdict);
		if (next === "unknown") return;
		const before = replica.health();
		replica.setHealth(next, verdict === "failing");
		if (next !== before) deps.changed(watch.modelId);
	}

	function tell(watch: Watch, health: ReplicaHealth, verdict: string): void {
		if (health === watch.told) return;
		if (health === "down" || watch.told === "down")
			log.warn(`a replica is ${health}`, { replica: watch.replica.alias, verdict });
		watch.told = health;
	}

	function answers(replica: Replica): boolean {
		const atMs = replica.answeredAtMs();
		return atMs !== undefined && clock.monotonicMs() - atMs < limits().healthIntervalMs;
	}

	function begin(watch: Watch): void {
		const abort = new AbortController();
		const cancelDeadline = clock.after(PROBE_DEADLINE_MS, () => abort.abort());
		const done = probe(watch, abort.signal).finally(() => {
			cancelDeadline();
			watch.question = undefined;
			if (watch.stopped) return;
			const jitter = 1 + JITTER_SHARE * (Math.random() * 2 - 1);
			watch.cancelTimer = clock.after(limits().healthIntervalMs * jitter, () => begin(watch));
		});
		watch.question = { abort, done };
	}

	async function end(watch: Watch): Promise<void> {
		watch.stopped = true;
		watch.cancelTimer();
		watch.question?.abort.abort();
		await watch.question?.done;
	}

	return {
		/** Sets the replicas to watch. New replicas are checked immediately. */
		watch(replicas: readonly { modelId: string; replica: Replica }[]) {
			const before = new Map(watches.map((watch) => [watch.replica, watch]));
			watches = replicas.map(({ modelId, replica }) => {
				const known = before.get(replica);
				before.delete(replica);
				if (known !== undefined) return known;
				const watch: Watch = {
					modelId,
					replica,
					failuresInRow: 0,
					told: "unknown",
					isWrong: false,
					cancelTimer: () => {},
					stopped: false,
					question: undefined,
				};
				begin(watch);
				return watch;
			});
			for (const watch of before.values()) void end(watch);
		},
		async stop(): Promise<void> {
			await Promise.all(watches.map(end));
			watches = [];
		},
	};
}

/** True for a live server: a status below 500, or 501. Some servers lack the path, others require a key. */
async function ask(
	fetch: FetchFunction,
	replica: Replica,
	signal: AbortSignal,
): Promise<"up" | "refused" | "failing" | "silent"> {
	const spec = replica.spec();
	const headers: Record<string, string> = { accept: "*/*", "user-agent": "tollgate" };
	if (spec.apiKey !== null) headers.authorization = `Bearer ${spec.apiKey}`;
	try {
		const { method, url } = replica.dialect.healthProbe(spec.url);
		const response = await fetch(url, { method, headers, signal, redirect: "manual", keepalive: false, proxy: false });
		await response.body?.cancel();
		return response.status < 500 || response.status === 501 ? "up" : "failing";
	} catch (error) {
		return isRefused(error) ? "refused" : "silent";
	}
}
