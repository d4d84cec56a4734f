import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import type { GrantReply, GrantRequest, LedgerStore } from "./store.ts";
import { NotLive } from "./store.ts";

/** Asks for slices; wishes of the same turn go to Postgres in one statement. */
export interface Grants {
	/**
	 * Asks until there is a definite answer: an unanswered grant may have been carried out, so its `op` stays the same.
	 * Rejects with NotLive alone.
	 */
	ask(budget: string, want: NanoUsd, min: NanoUsd): Promise<GrantReply>;
	stop(): void;
}

interface Wish {
	readonly request: GrantRequest;
	resolve(reply: GrantReply): void;
	reject(error: unknown): void;
}

const RETRY_MS = 100;

export function createGrants(deps: { store: LedgerStore; clock: Clock; log: Log; newUuid: () => string }): Grants {
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
		async ask(budget, want, min) {
			assert(want >= min && min > 0, "a wish is for something");
			const request: GrantRequest = { op: newUuid(), budget, want, min, again: false };
			for (let again = false; ; again = true) {
				if (stopped) throw new NotLive("the ledger is stopping");
				try {
					return await sendOnce({ ...request, again });
				} catch (error) {
					if (error instanceof NotLive) throw error;
					log.warn("a grant was not answered; asking again", { budget, error });
					await sleep(clock, RETRY_MS);
				}
			}
		},
		stop() {
			stopped = true;
		},
	};
}
