import { Fault } from "../../base/fault.ts";
import { charsOf, type RoutedPrompt } from "./prompt-prefix.ts";
import type { Replica } from "./replica.ts";
import type { AcquireOptions } from "./ticket.ts";

type Asked = Pick<AcquireOptions, "exclude" | "accountId" | "routed">;

/** Share of its capacity by which the chosen replica may be busier than the least busy one. */
const BUSIER_SHARE_MAX = 0.25;
/** Replicas count as equally soon if their estimates differ by less than this share and time. */
const EQUAL_SHARE = 0.05;
const EQUAL_MS = 5;
/** Part of an unknown prompt that its home is assumed to have cached, because another gateway may have sent it there. */
const HOME_CACHED_SHARE = 0.3;
export const RETRY_AFTER_S_MIN = 1;

/**
 * Chooses the replica with a free place that probably starts the prompt soonest: the wait, then the prompt's part that
 * is not cached. Among equally soon ones the prompt's home is preferred, else the least busy, searched from index `turn`.
 * A request without a prompt gets the least busy one.
 */
export function createReplicaChoice() {
	/** Per replica, for the present choice: its load, or infinite without a free place; cached blocks; the estimate. */
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
		// The beginning that a second replica has too is common to many prompts; the next block tells them apart.
		let most = 0;
		let common = 0;
		// The mean, because the measured speeds of equal servers differ by what other gateways send them.
		let msPerChar = 0;
		for (let at = 0; at < count; at += 1) {
			const { prefill } = replicas[at] as Replica;
			const cached = prefill.index.cachedBlocks(hashes);
			blocks[at] = cached;
			common = Math.max(common, Math.min(most, cached));
			most = Math.max(most, cached);
			msPerChar += prefill.msPerChar() / count;
		}
		const home = homeOf(hashes[common], replicas);
		for (let at = 0; at < count; at += 1) {
			const newChars = (chars - charsOf(blocks[at] as number)) * (at === home ? 1 - HOME_CACHED_SHARE : 1);
			const waitMs = (replicas[at] as Replica).prefill.waitMs();
			estimates[at] = (loads[at] as number) > loadMax ? Number.POSITIVE_INFINITY : waitMs + newChars * msPerChar;
		}
		return home;
	}

	/** Rendezvous hashing, equal in all gateways: a changed replica moves only its own prompts. */
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

/** Share of the capacity that is occupied after one more call. */
function loadOf(replica: Replica): number {
	return (replica.inFlight() + 1) / replica.capacity();
}

/** Spreads 32 bits evenly (finalizer of MurmurHash3). */
function mixed(bits: number): number {
	let hash = Math.imul(bits ^ (bits >>> 16), 0x85eb_ca6b);
	hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
	return (hash ^ (hash >>> 16)) >>> 0;
}

/** Number of places, free or occupied. */
export function countPlaces(replicas: readonly Replica[]): number {
	let all = 0;
	for (const replica of replicas) if (replica.takesCalls()) all += replica.capacity();
	return all;
}

export function countFree(replicas: readonly Replica[]): number {
	let free = 0;
	for (const replica of replicas)
		if (replica.takesCalls()) free += Math.max(0, replica.capacity() - replica.inFlight());
	return free;
}

/** True if there are usable replicas, but none has a free place. */
export function areAllTaken(replicas: readonly Replica[]): boolean {
	return countPlaces(replicas) > 0 && countFree(replicas) === 0;
}

/** True if a replica outside `exclude` may serve this account, even if it is full now. */
export function isAnyUsable(replicas: readonly Replica[], exclude: ReadonlySet<Replica>, accountId: string): boolean {
	for (const replica of replicas) if (!exclude.has(replica) && replica.usable(accountId)) return true;
	return false;
}

/** Fault with the time until this account may use a replica again. */
export function noneUsable(replicas: readonly Replica[], accountId = ""): Fault {
	const leftMs = replicas.map((replica) => replica.coolMsLeft(accountId)).filter((ms) => ms > 0);
	const coolS = leftMs.length === 0 ? 0 : Math.ceil(Math.min(...leftMs) / 1000);
	const retryAfterS = Math.max(RETRY_AFTER_S_MIN, coolS);
	return new Fault("service_unavailable", "No server for this model is available at the moment.", { retryAfterS });
}

/** Time of the latest answer; undefined without one. */
export function lastAnswerAtMs(replicas: readonly Replica[]): number | undefined {
	const times = replicas.flatMap((replica) => replica.answeredAtMs() ?? []);
	return times.length === 0 ? undefined : Math.max(...times);
}
