import type { Clock } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";
import { charsOfBlocks, type RoutedPrompt } from "./prompt-prefix.ts";
import type { Replica } from "./replica.ts";
import type { AcquireOptions } from "./ticket.ts";

type Asked = Pick<AcquireOptions, "exclude" | "accountId" | "routed">;

/** The chosen replica may be busier than the least busy replica by at most this share of its capacity. */
const BUSIER_SHARE_MAX = 0.25;
/** Start times count as equal if they differ by less than this share and this time. */
const EQUAL_SHARE = 0.05;
const EQUAL_MS = 5;
/** Assumed cached part of an unknown prompt at its home, to which another gateway may have sent it. */
const HOME_CACHED_SHARE = 0.3;
export const RETRY_AFTER_S_MIN = 1;

/**
 * Chooses the replica with a free place that probably starts the prompt first: its wait, plus the time for the uncached
 * part of the prompt, which counts again for each waiting prompt. Of equal replicas the prompt's home is preferred, then
 * the least busy one, searched from index `turn`. A request without a prompt gets the least busy replica.
 */
export function createReplicaChoice(clock: Pick<Clock, "monotonicMs">) {
	/** Per replica, for the current choice: its load (infinite without a free place), cached blocks, and estimate. */
	let loads = new Float64Array(0);
	let blocks = new Uint32Array(0);
	let estimates = new Float64Array(0);

	return (replicas: readonly Replica[], turn: number, asked: Asked): Replica | undefined => {
		const count = replicas.length;
		if (count === 1) {
			const only = replicas[0] as Replica;
			return isFree(only, asked) ? only : undefined;
		}
		if (loads.length < count) {
			loads = new Float64Array(count);
			blocks = new Uint32Array(count);
			estimates = new Float64Array(count);
		}
		let leastLoad = Number.POSITIVE_INFINITY;
		for (let at = 0; at < count; at += 1) {
			const replica = replicas[at] as Replica;
			const load = isFree(replica, asked) ? loadOf(replica) : Number.POSITIVE_INFINITY;
			loads[at] = load;
			if (load < leastLoad) leastLoad = load;
		}
		if (leastLoad === Number.POSITIVE_INFINITY) return undefined;
		const { routed } = asked;
		if (routed === undefined) return replicas[leastOf(loads, count, turn)];
		const home = estimate(replicas, routed, leastLoad + BUSIER_SHARE_MAX);
		const least = estimates[leastOf(estimates, count, turn)] as number;
		const soonMs = least * (1 + EQUAL_SHARE) + EQUAL_MS;
		if (home >= 0 && (estimates[home] as number) <= soonMs) return replicas[home];
		for (let at = 0; at < count; at += 1) if ((estimates[at] as number) > soonMs) loads[at] = Number.POSITIVE_INFINITY;
		return replicas[leastOf(loads, count, turn)];
	};

	/** Fills `estimates`; infinite for replicas that are too busy. Returns the index of the prompt's home, or -1. */
	function estimate(replicas: readonly Replica[], { chars, hashes }: RoutedPrompt, loadMax: number): number {
		const count = replicas.length;
		// A beginning that a second replica also has is common to many prompts, so the home is chosen by the next block.
		let most = 0;
		let common = 0;
		// Uses the mean speed, because the measured speeds of equal servers differ by the load from other gateways.
		let msPerChar = 0;
		// Prompts that wait at each replica, which uncached characters delay too. The minimum, because a replica that stopped
		// answering must not attract its cached prompts.
		let waiting = Number.POSITIVE_INFINITY;
		for (let at = 0; at < count; at += 1) {
			const { prefill } = replicas[at] as Replica;
			const cached = prefill.index.cachedBlocks(hashes);
			blocks[at] = cached;
			common = Math.max(common, Math.min(most, cached));
			most = Math.max(most, cached);
			msPerChar += prefill.msPerChar() / count;
			waiting = Math.min(waiting, prefill.waiting());
		}
		const home = homeOf(hashes[common], replicas);
		const nowMs = clock.monotonicMs();
		for (let at = 0; at < count; at += 1) {
			if ((loads[at] as number) > loadMax) {
				estimates[at] = Number.POSITIVE_INFINITY;
				continue;
			}
			const newMs = (chars - charsOfBlocks(blocks[at] as number)) * msPerChar;
			const ownShare = at === home ? 1 - HOME_CACHED_SHARE : 1;
			estimates[at] = (replicas[at] as Replica).prefill.waitMs(nowMs) + newMs * (ownShare + waiting);
		}
		return home;
	}

	/** Rendezvous hashing, equal in all gateways: a replica that is added or removed moves only its own prompts. */
	function homeOf(hash: number | undefined, replicas: readonly Replica[]): number {
		let home = -1;
		let most = -1;
		if (hash === undefined) return home;
		for (let at = 0; at < replicas.length; at += 1) {
			const weight = mixed(hash ^ (replicas[at] as Replica).aliasHash);
			if (weight <= most || loads[at] === Number.POSITIVE_INFINITY) continue;
			home = at;
			most = weight;
		}
		return home;
	}
}

/** Index of the smallest of the first `count` values, searched from index `from`. */
function leastOf(values: Float64Array, count: number, from: number): number {
	let least = from % count;
	for (let step = 1; step < count; step += 1) {
		const at = (from + step) % count;
		if ((values[at] as number) < (values[least] as number)) least = at;
	}
	return least;
}

function isFree(replica: Replica, { exclude, accountId }: Asked): boolean {
	return replica.hasPlace(accountId) && !exclude.has(replica);
}

/** Share of the capacity that would be occupied with one more call. */
const loadOf = (replica: Replica): number => (replica.inFlight() + 1) / replica.capacity();

/** Spreads 32 bits evenly (finalizer of MurmurHash3). */
function mixed(bits: number): number {
	let hash = Math.imul(bits ^ (bits >>> 16), 0x85eb_ca6b);
	hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
	return (hash ^ (hash >>> 16)) >>> 0;
}

/** Number of places, free or occupied, at replicas that take calls. */
export function countPlaces(replicas: readonly Replica[]): number {
	let all = 0;
	for (const replica of replicas) if (replica.takesCalls()) all += replica.capacity();
	return all;
}

export function countFreePlaces(replicas: readonly Replica[]): number {
	let free = 0;
	for (const replica of replicas)
		if (replica.takesCalls()) free += Math.max(0, replica.capacity() - replica.inFlight());
	return free;
}

/** True if there are usable replicas, but none has a free place. */
export function areAllPlacesTaken(replicas: readonly Replica[]): boolean {
	return countPlaces(replicas) > 0 && countFreePlaces(replicas) === 0;
}

/** True if a replica outside `exclude` may serve this account, even if it is full now. */
export function hasUsableReplica(
	replicas: readonly Replica[],
	exclude: ReadonlySet<Replica>,
	accountId: string,
): boolean {
	for (const replica of replicas) if (!exclude.has(replica) && replica.usable(accountId)) return true;
	return false;
}

/** Fault with the time until this account may use a replica again. */
export function noUsableReplicaFault(replicas: readonly Replica[], accountId = ""): Fault {
	const leftMs = replicas.map((replica) => replica.coolMsLeft(accountId)).filter((ms) => ms > 0);
	const coolS = leftMs.length === 0 ? 0 : Math.ceil(Math.min(...leftMs) / 1000);
	const retryAfterS = Math.max(RETRY_AFTER_S_MIN, coolS);
	return new Fault("service_unavailable", "No server for this model is available at the moment.", { retryAfterS });
}

/** Monotonic time of the latest answer of any replica; undefined without one. */
export function lastAnswerAtMs(replicas: readonly Replica[]): number | undefined {
	const times = replicas.flatMap((replica) => replica.answeredAtMs() ?? []);
	return times.length === 0 ? undefined : Math.max(...times);
}
