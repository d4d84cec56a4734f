import { Fault } from "../../base/fault.ts";
import type { Replica } from "./replica.ts";
import type { AcquireOptions } from "./ticket.ts";

type Asked = Pick<AcquireOptions, "exclude" | "accountId" | "affinity">;

/** Share of its capacity by which the preferred replica may be busier than the least busy one. */
const AFFINITY_SLACK_SHARE = 0.25;
export const RETRY_AFTER_S_MIN = 1;

/** The conversation's preferred replica, or the least busy one with a free place, searched from index `turn`. */
export function chooseReplica(
	replicas: readonly Replica[],
	turn: number,
	{ affinity, exclude, accountId }: Asked,
): Replica | undefined {
	const count = replicas.length;
	if (count === 1) {
		const only = replicas[0] as Replica;
		return only.hasPlace(accountId) && !exclude.has(only) ? only : undefined;
	}
	let least: Replica | undefined;
	let leastLoad = Number.POSITIVE_INFINITY;
	for (let step = 0; step < count; step += 1) {
		const replica = replicas[(turn + step) % count] as Replica;
		if (exclude.has(replica) || !replica.hasPlace(accountId)) continue;
		const load = loadOf(replica);
		if (load < leastLoad) {
			least = replica;
			leastLoad = load;
		}
	}
	if (affinity === undefined || least === undefined) return least;
	const preferred = preferredOf(affinity, replicas, { exclude, accountId });
	if (preferred === undefined || !preferred.hasPlace(accountId)) return least;
	return loadOf(preferred) <= leastLoad + AFFINITY_SLACK_SHARE ? preferred : least;
}

/** Share of the capacity that is occupied after one more call. */
function loadOf(replica: Replica): number {
	return (replica.inFlight() + 1) / replica.capacity();
}

/** Rendezvous hashing: if a replica changes, only its own conversations move. */
function preferredOf(
	affinity: string,
	replicas: readonly Replica[],
	{ exclude, accountId }: Pick<AcquireOptions, "exclude" | "accountId">,
): Replica | undefined {
	let best: Replica | undefined;
	let bestHash = -1n;
	for (const replica of replicas) {
		if (exclude.has(replica) || !replica.usable(accountId)) continue;
		const hash = Bun.hash.wyhash(`${affinity}\n${replica.alias}`);
		if (hash > bestHash) {
			best = replica;
			bestHash = hash;
		}
	}
	return best;
}

/** Number of places, free or occupied. */
export function placesOf(replicas: readonly Replica[]): number {
	let all = 0;
	for (const replica of replicas) if (replica.takesCalls()) all += replica.capacity();
	return all;
}

/** True if there are usable replicas, but none has a free place. */
export function areAllTaken(replicas: readonly Replica[]): boolean {
	let some = false;
	for (const replica of replicas) {
		if (!replica.takesCalls()) continue;
		if (replica.inFlight() < replica.capacity()) return false;
		some = true;
	}
	return some;
}

/** True if a replica outside `exclude` may serve this account, even if it is full now. */
export function isAnyUsable(replicas: readonly Replica[], exclude: ReadonlySet<Replica>, accountId: string): boolean {
	for (const replica of replicas) if (!exclude.has(replica) && replica.usable(accountId)) return true;
	return false;
}

/** Fault with the time until this account may use a replica again. */
export function noneUsable(replicas: readonly Replica[], accountId = ""): Fault {
	let coolMs = Number.POSITIVE_INFINITY;
	for (const replica of replicas) {
		const left = replica.coolMsLeft(accountId);
		if (left > 0) coolMs = Math.min(coolMs, left);
	}
	const retryAfterS = Number.isFinite(coolMs)
		? Math.max(RETRY_AFTER_S_MIN, Math.ceil(coolMs / 1000))
		: RETRY_AFTER_S_MIN;
	return new Fault("service_unavailable", "No server for this model is available at the moment.", { retryAfterS });
}

/** Time of the latest answer; undefined without one. */
export function lastAnswerAtMs(replicas: readonly Replica[]): number | undefined {
	const times = replicas.flatMap((replica) => replica.answeredAtMs() ?? []);
	return times.length === 0 ? undefined : Math.max(...times);
}
