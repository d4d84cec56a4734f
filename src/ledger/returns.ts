import { type Clock, sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { isDatabaseDown } from "../db/outage.ts";
import type { LedgerStore, ReturnRequest } from "./store.ts";

const RETURNS_A_STATEMENT = 1_000;
const RETRY_MS = 100;
/**
 * First pause in milliseconds before a refused return is sent again; each pause is longer than the last. A failover may
 * have lost the grant, and an operator must repair that.
 */
const REFUSED_RETRY_MS_MIN = 5_000;
const REFUSED_RETRY_MS_MAX = 300_000;
/** First pause in milliseconds before a return whose row was locked is sent again; pauses grow. */
const BUSY_RETRY_MS_MIN = 5;
const BUSY_RETRY_MS_MAX = 250;

interface Outgoing {
	readonly request: ReturnRequest;
	resolve(arrived: boolean): void;
}

/** Sends returned credit to Postgres. All returns of one turn of the event loop are sent in one statement. */
export function createReturns({ store, clock, log }: { store: LedgerStore; clock: Clock; log: Log }) {
	let outbox: Outgoing[] = [];
	let stopped = false;

	function emptyOutbox(): void {
		const sent = outbox;
		outbox = [];
		for (let at = 0; at < sent.length; at += RETURNS_A_STATEMENT)
			void deliver(sent.slice(at, at + RETURNS_A_STATEMENT));
	}

	/** Sends the batch until Postgres has it. Returns that wait for a locked row are sent again separately. */
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
				if (isDatabaseDown(error)) {
					log.warn("no answer to returns of credit; retrying", { returns: left.length, error });
					await sleep(clock, RETRY_MS);
				} else if (left.length > 1) {
					// One return makes the whole statement fail, so each is now sent alone.
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
		/** True when Postgres has the return. False if given up: closing the leases returns the credit. Never rejects. */
		send: (request: ReturnRequest) =>
			new Promise<boolean>((resolve) => {
				if (outbox.length === 0) queueMicrotask(emptyOutbox);
				outbox.push({ request, resolve });
			}),
		stop() {
			stopped = true;
		},
	};
}
