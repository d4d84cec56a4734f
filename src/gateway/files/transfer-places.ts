import { Fault } from "../../base/fault.ts";

const RETRY_AFTER_S = 2;

/** Limits concurrent transfers; more are refused with retry-after. */
export function createTransferPlaces(options: { perAccountMax: number; max: number }) {
	const accounts = new Map<string, number>();
	let all = 0;

	return {
		/**
		 * Takes a place; the returned function frees it, idempotently. Faults: rate_limit_exceeded (the account's limit),
		 * overloaded (the limit of all).
		 */
		enter(accountId: string): () => void {
			const own = accounts.get(accountId) ?? 0;
			const detail = { retryAfterS: RETRY_AFTER_S };
			if (own >= options.perAccountMax)
				throw new Fault("rate_limit_exceeded", "This account transfers as many files at once as it may.", detail);
			if (all >= options.max)
				throw new Fault("overloaded", "The service transfers too many files at once. Try again shortly.", detail);
			accounts.set(accountId, own + 1);
			all += 1;
			let left = false;
			return () => {
				if (left) return;
				left = true;
				all -= 1;
				const others = (accounts.get(accountId) ?? 1) - 1;
				if (others === 0) accounts.delete(accountId);
				else accounts.set(accountId, others);
			};
		},
	};
}
