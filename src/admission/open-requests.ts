import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import type { ServiceLimits } from "../catalog/service-limits.ts";

/** Requests that were admitted and are not settled, waiting ones among them. What one costs in memory, all of them bound. */
export interface OpenRequests {
	/** Faults: overloaded if there are as many as there may be, rate_limit_exceeded if one account has its share of them. */
	check(accountId: string): void;
	enter(accountId: string): void;
	leave(accountId: string): void;
}

export function createOpenRequests(deps: {
	limits(): Pick<ServiceLimits, "openRequestsMax" | "accountShare">;
}): OpenRequests {
	/** Of the accounts that have any. */
	const accounts = new Map<string, number>();
	let all = 0;

	return {
		check(accountId) {
			const { openRequestsMax, accountShare } = deps.limits();
			if (all >= openRequestsMax)
				throw new Fault("overloaded", "The service has as many requests as it takes. Try again shortly.", {
					retryAfterS: 1,
				});
			if ((accounts.get(accountId) ?? 0) >= Math.max(1, Math.floor(openRequestsMax * accountShare)))
				throw new Fault("rate_limit_exceeded", "This account has as many requests at once as one account may have.", {
					retryAfterS: 1,
				});
		},
		enter(accountId) {
			accounts.set(accountId, (accounts.get(accountId) ?? 0) + 1);
			all += 1;
		},
		leave(accountId) {
			const left = (accounts.get(accountId) ?? 0) - 1;
			assert(left >= 0, "who leaves has entered");
			if (left === 0) accounts.delete(accountId);
			else accounts.set(accountId, left);
			all -= 1;
		},
	};
}
