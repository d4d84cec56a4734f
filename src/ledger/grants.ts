import { assert } from "../base/assert.ts";
import { type Clock, sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { type GrantReply, type GrantRequest, InstanceNotLive, type LedgerStore } from "./store.ts";

interface Wish {
	readonly request: GrantRequest;
	resolve(reply: GrantReply): void;
	reject(error: unknown): void;
}

const RETRY_MS = 100;
/** First pause in milliseconds before a grant whose row was locked is requested again. The pauses double. */
const BUSY_RETRY_MS_MIN = 3;
const BUSY_RETRY_MS_MAX = 250;

/** Requests grants of credit. All grants requested in one turn of the event loop are sent in one statement. */
export function createGrants(deps: {
	store: LedgerStore;
	clock: Clock;
	log: Log;
	newUuid: () => string;
	/** Called if it remains unknown whether a grant was executed. If it was, closing the epoch returns the credit. */
	onUnknown(budget: string): void;
}) {
	const { store, clock, log, newUuid } = deps;
	let wishes: Wish[] = [];
	let stopped = false;

	function send(): void {
		const sent = wishes;
		wishes = [];
		store.grant(sent.map((wish) => wish.request)).then(
			(replies) => {
				const byOp = new Map(replies.map((reply) => [reply.op, reply]));
				for (const wish of sent) {
					const reply = byOp.get(wish.request.op);
					if (reply) wish.resolve(reply);
					else wish.reject(new Error("the grant's reply misses an operation"));
				}
			},
			(error) => {
				for (const wish of sent) wish.reject(error);
			},
		);
	}

	function sendOnce(request: GrantRequest): Promise<GrantReply> {
		return new Promise((resolve, reject) => {
			if (wishes.length === 0) queueMicrotask(send);
			wishes.push({ request, resolve, reject });
		});
	}

	return {
		/**
		 * Requests a grant, and repeats it with the same `op` until Postgres answers, because an unanswered attempt may
		 * have committed. Rejects only with InstanceNotLive.
		 */
		async ask(budget: string, want: NanoUsd, min: NanoUsd, ticket: number | null) {
			assert(want >= min && min > 0, "a wish is for something");
			let op = newUuid();
			let again = false;
			for (let busyMs = BUSY_RETRY_MS_MIN; ; ) {
				if (stopped) {
					if (again) deps.onUnknown(budget);
					throw new InstanceNotLive("the ledger is stopping");
				}
				try {
					const reply = await sendOnce({ op, budget, want, min, again, ticket });
					if (again && !reply.busy && reply.amount === 0) {
						// Postgres repeated its answer to an earlier attempt. A new `op` requests the credit available now.
						op = newUuid();
						again = false;
						continue;
					}
					if (!reply.busy) return reply;
					await sleep(clock, busyMs);
					busyMs = Math.min(2 * busyMs, BUSY_RETRY_MS_MAX);
				} catch (error) {
					if (error instanceof InstanceNotLive) {
						if (again) deps.onUnknown(budget);
						throw error;
					}
					log.warn("no answer to a grant; retrying", { budget, error });
					again = true;
					await sleep(clock, RETRY_MS);
				}
			}
		},
		stop() {
			stopped = true;
		},
	};
}
