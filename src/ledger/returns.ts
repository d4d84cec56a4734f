import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { isDatabaseAway } from "../db/outage.ts";
import type { LedgerStore, ReturnRequest } from "./store.ts";

/** Carries what was given back to Postgres; what is given back in the same turn goes together. */
export interface Returns {
	/** True when it has arrived; false if it was given up: then it is free again when the leases are closed. Never rejects. */
	send(request: ReturnRequest): Promise<boolean>;
	stop(): void;
}

const RETURNS_A_STATEMENT = 1_000;
const RETRY_MS = 100;
/**
 * One that is refused alone is damage, or its grant was forgotten by a server that took over: it is sent again, ever more
 * rarely, only in case that somebody mends it.
 */
const REFUSED_RETRY_MS_MIN = 5_000;
const REFUSED_RETRY_MS_MAX = 300_000;
/** A row that is held is mostly free again at once; if not, it is tried ever more rarely. */
const BUSY_RETRY_MS_MIN = 5;
const BUSY_RETRY_MS_MAX = 250;

interface Outgoing {
	readonly request: ReturnRequest;
	resolve(arrived: boolean): void;
}

export function createReturns(deps: { store: LedgerStore; clock: Clock; log: Log }): Returns {
	const { store, clock, log } = deps;
	let outbox: Outgoing[] = [];
	let stopped = false;

	function emptyOutbox(): void {
		const sent = outbox;
		outbox = [];
		for (let at = 0; at < sent.length; at += RETURNS_A_STATEMENT)
			void deliver(sent.slice(at, at + RETURNS_A_STATEMENT));
	}

	/** Until all have arrived; what waits for a row that somebody holds is sent again without the others. */
	async function deliver(batch: readonly Outgoing[]): Promise<void> {
		let left = batch;
		let busyMs = BUSY_RETRY_MS_MIN;
		let refusedMs = REFUSED_RETRY_MS_MIN;
		while (left.length > 0 && !stopped) {
			try {
				const busy = await store.giveBack(left.map(({ request }) => request));
				for (const { request, resolve } of left) if (!busy.has(request.op)) resolve(true);
				left = left.filter(({ request }) => busy.has(request.op));
				if (left.length === 0) return;
				await sleep(clock, busyMs);
				busyMs = Math.min(2 * busyMs, BUSY_RETRY_MS_MAX);
			} catch (error) {
				if (isDatabaseAway(error)) {
					log.warn("returns were not answered; sending them again", { returns: left.length, error });
					await sleep(clock, RETRY_MS);
				} else if (left.length > 1) {
					// One of them is in the way of the others.
					for (const one of left) void deliver([one]);
					return;
				} else {
					log.error("a return is refused", { return: left[0]?.request, error });
					await sleep(clock, refusedMs);
					refusedMs = Math.min(2 * refusedMs, REFUSED_RETRY_MS_MAX);
				}
			}
		}
		for (const { resolve } of left) resolve(false);
	}

	return {
		send: (request) =>
			new Promise((resolve) => {
				if (outbox.length === 0) queueMicrotask(emptyOutbox);
				outbox.push({ request, resolve });
			}),
		stop() {
			stopped = true;
		},
	};
}
