import { CounterMap } from "../base/counter-map.ts";
import { Fault } from "../base/fault.ts";

/** Limits how many requests of a kind run or wait at once; further ones are refused with retry-after. */
export function createAccountPlaces({ perAccountMax, max }: { perAccountMax: number; max: number }) {
	const accounts = new CounterMap();
	let all = 0;

	return {
		/** Takes a place; the returned function frees it, idempotently. Faults: rate_limit_exceeded, overloaded. */
		enter(accountId: string): () => void {
			if (accounts.of(accountId) >= perAccountMax)
				throw new Fault(
					"rate_limit_exceeded",
					"This account has too many requests of this kind in progress. Retry when one has ended.",
					{ retryAfterS: 1 },
				);
			if (all >= max)
				throw new Fault("overloaded", "The service has too many requests of this kind in progress. Retry shortly.", {
					retryAfterS: 2,
				});
			accounts.add(accountId, 1);
			all += 1;
			let left = false;
			return () => {
				if (left) return;
				left = true;
				all -= 1;
				accounts.add(accountId, -1);
			};
		},
	};
}
