import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { invalidApiKey } from "./bearer.ts";
import type { KeyDigest } from "./digest.ts";
import type { FailedAttempts } from "./failed-attempts.ts";
import { networkOf } from "./failed-attempts.ts";
import type { KeyEntry } from "./key-entry.ts";

/**
 * Looks keys up that this instance has not seen. A key of valid form costs Postgres a question before anybody knows
 * that it does not exist, so the limit of failures acts before: as many questions of one address are under way as it may
 * still fail, and the others wait for their outcome. Once it has failed too often one a second goes on and a few wait for
 * that, so that a good key behind the same address gets in. Keys that are in memory never come here. Requests of one
 * address with the same key share a question.
 */
export interface KeyLoadLimiter<Digest = KeyDigest, Entry = KeyEntry> {
	/**
	 * The key. Faults: invalid_api_key; rate_limit_exceeded if the address has failed too often; service_unavailable if
	 * too many are asked for, everybody together fails too often, or Postgres cannot be asked.
	 */
	find(digest: Digest, address: string): Promise<Entry>;
}

/** Of one address; beyond it they are sent away to come back. */
const WAITING_MAX = 1_000;
/** Of an address that failed too often: the last of them waits as many seconds. */
const TRICKLE_MAX = 8;
const WINDOW_MS = 60_000;

interface Asking {
	/** All who ask or wait, and who was woken and has not looked yet. */
	present: number;
	underWay: number;
	/** Wait for the one that goes on each second. */
	trickling: number;
	readonly waiting: (() => void)[];
}

export function createKeyLoadLimiter<Digest extends string, Entry>(
	deps: { keyring: { load(digest: Digest): Promise<Entry | null> }; failedAttempts: FailedAttempts; clock: Clock },
	/** Failures a minute of all addresses together, that many networks at once cannot keep Postgres busy. */
	options: { failuresPerMinuteMax: number },
): KeyLoadLimiter<Digest, Entry> {
	const { keyring, failedAttempts, clock } = deps;
	const networks = new Map<string, Asking>();
	/** By address and key: what is being found out, or waits for it. */
	const asked = new Map<string, Promise<Entry>>();
	let failures = 0;
	let failuresUntilMs = 0;

	function assertNotFlooded(): void {
		const nowMs = clock.monotonicMs();
		if (nowMs >= failuresUntilMs) {
			failures = 0;
			failuresUntilMs = nowMs + WINDOW_MS;
		}
		if (failures >= options.failuresPerMinuteMax) throw comeBack("keys that do not exist are asked for too often");
	}

	/** Counts a question of this address in, once it may be asked; in the turn in which it was found that it may. */
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
		const entry = await keyring.load(digest);
		if (entry !== null) return entry;
		failures += 1;
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
				assertNotFlooded();
				return await ask(digest, address);
			} finally {
				asking.underWay -= 1;
			}
		} finally {
			// Whoever wakes looks again; one that may not go on wakes nobody, so the last to leave wakes all.
			if (asking.underWay === 0) for (const wake of asking.waiting.splice(0)) wake();
			else asking.waiting.shift()?.();
			asking.present -= 1;
			if (asking.present === 0) networks.delete(network);
		}
	}

	/** Each that failed counts, also without a question of its own. */
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
			const network = networkOf(address);
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
