import { type Clock, sleep } from "../base/clock.ts";
import { createFairQueue } from "../base/fair-pool.ts";
import { Fault } from "../base/fault.ts";
import { invalidApiKey } from "./bearer.ts";
import { addressNetwork, addressSite, type FailedAttempts } from "./failed-attempts.ts";
import type { KeyEntry } from "./key-entry.ts";
import type { KeyDigest } from "./secret.ts";

/**
 * Limits look-ups of keys that are not in memory, because each costs Postgres a query. An address may run at most as
 * many at once as it may still have failures. After too many failures, one query per second still lets its valid keys
 * in. Requests of an address with the same key share a query. Networks (`addressSite`) take turns, so that a valid key
 * waits for at most one query of each other network, and at most QUERY_WAIT_MS.
 */
export interface KeyLoadLimiter<Digest = KeyDigest, Entry = KeyEntry> {
	/** Returns the key. Faults: `invalid_api_key`, `service_unavailable`; `rate_limit_exceeded` after many failures. */
	find(digest: Digest, address: string): Promise<Entry>;
}

/** Look-ups per address that may wait. Any others get `service_unavailable`. */
const WAITING_MAX = 1_000;
/** Look-ups per address that may wait for the one query per second, and so the most seconds that one waits. */
const TRICKLE_MAX = 8;
const MINUTE_MS = 60_000;
/** Queries of all addresses that run at once, followed by how many may wait, and for how long. */
const QUERIES_MAX = 32;
const QUERIES_WAITING_MAX = 10_000;
const QUERY_WAIT_MS = 10_000;

interface Asking {
	/** All look-ups of the network, including those that were resumed but have not continued yet. */
	present: number;
	underWay: number;
	/** Look-ups of the network that wait for the one query per second. */
	trickling: number;
	readonly waiting: (() => void)[];
}

export function createKeyLoadLimiter<Digest extends string, Entry>(
	deps: { keyring: { load(digest: Digest): Promise<Entry | null> }; failedAttempts: FailedAttempts; clock: Clock },
	/** Queries for unknown keys per minute, over all addresses, so that many networks cannot keep Postgres busy. */
	options: { failuresPerMinuteMax: number },
): KeyLoadLimiter<Digest, Entry> {
	const { keyring, failedAttempts, clock } = deps;
	const networks = new Map<string, Asking>();
	/** Look-ups in progress or waiting, by network and key. */
	const asked = new Map<string, Promise<Entry>>();
	const queries = createFairQueue(
		{ clock },
		{
			places: QUERIES_MAX,
			waitingMax: QUERIES_WAITING_MAX,
			waitMsMax: QUERY_WAIT_MS,
			full: () => comeBack("too many unknown keys are being tried"),
		},
	);
	/** Milliseconds for which the query of an unknown key occupies its slot, which limits such queries per minute. */
	const failureMs = (QUERIES_MAX * MINUTE_MS) / options.failuresPerMinuteMax;

	/** Waits until this address may run a query, and counts the query in the same step. */
	async function enter(asking: Asking, address: string): Promise<void> {
		for (;;) {
			const left = failedAttempts.left(address);
			const waitMs = left > asking.underWay ? 0 : left === 0 ? failedAttempts.takeTrickle(address) : undefined;
			if (waitMs === 0) {
				asking.underWay += 1;
				return;
			}
			if (waitMs !== undefined) {
				if (asking.trickling >= TRICKLE_MAX) throw failedAttempts.tooMany(address);
				asking.trickling += 1;
				await sleep(clock, waitMs);
				asking.trickling -= 1;
				continue;
			}
			if (asking.waiting.length >= WAITING_MAX) throw comeBack("too many keys of one address are being loaded");
			await new Promise<void>((resolve) => asking.waiting.push(resolve));
		}
	}

	async function ask(digest: Digest, address: string): Promise<Entry> {
		const leave = await queries.enter(addressSite(address));
		let keepMs = 0;
		try {
			const entry = await keyring.load(digest);
			if (entry !== null) return entry;
			keepMs = failureMs;
		} finally {
			if (keepMs > 0) clock.after(keepMs, leave);
			else leave();
		}
		failedAttempts.count(address);
		throw invalidApiKey();
	}

	async function findFirst(digest: Digest, address: string, network: string): Promise<Entry> {
		const asking = networks.get(network) ?? { present: 0, underWay: 0, trickling: 0, waiting: [] };
		networks.set(network, asking);
		asking.present += 1;
		try {
			await enter(asking, address);
			try {
				return await ask(digest, address);
			} finally {
				asking.underWay -= 1;
			}
		} finally {
			// Wakes one waiting look-up. If it may not run it wakes no other, so the last query to finish wakes all look-ups.
			if (asking.underWay === 0) for (const wake of asking.waiting.splice(0)) wake();
			else asking.waiting.shift()?.();
			asking.present -= 1;
			if (asking.present === 0) networks.delete(network);
		}
	}

	/** Counts a failure for each request, even if several requests shared the query. */
	async function findToo(first: Promise<Entry>, address: string): Promise<Entry> {
		try {
			return await first;
		} catch (error) {
			if (error instanceof Fault && error.code === "invalid_api_key") failedAttempts.count(address);
			throw error;
		}
	}

	return {
		find(digest, address) {
			const network = addressNetwork(address);
			const name = `${network} ${digest}`;
			const first = asked.get(name);
			if (first !== undefined) return findToo(first, address);
			const finding = findFirst(digest, address, network).finally(() => asked.delete(name));
			asked.set(name, finding);
			return finding;
		},
	};
}

function comeBack(detail: string): Fault {
	return new Fault("service_unavailable", "The API key cannot be checked right now. Please try again.", {
		retryAfterS: 1,
		private: detail,
	});
}
