import { assert } from "../base/assert.ts";
import { CounterMap } from "../base/counter-map.ts";
import { Fault } from "../base/fault.ts";
import type { ServiceLimits } from "../catalog/service-limits.ts";

/** Counts requests that are admitted and not settled, including waiting ones; they bound the memory in use. */
export interface OpenRequests {
	/** Faults: overloaded at the limit of all, rate_limit_exceeded at the limit of one account. */
	check(accountId: string): void;
	enter(accountId: string): void;
	leave(accountId: string): void;
}

export function createOpenRequests(deps: {
	limits(): Pick<ServiceLimits, "openRequestsMax" | "accountShare">;
}): OpenRequests {
	/** By account. */
	const open = new CounterMap();
	let all = 0;

	return {
		check(accountId) {
			const { openRequestsMax, accountShare } = deps.limits();
			if (all >= openRequestsMax)
				throw new Fault("overloaded", "The service has reached its limit of concurrent requests. Try again shortly.", {
					retryAfterS: 1,
				});
			if (open.of(accountId) >= Math.max(1, Math.floor(openRequestsMax * accountShare)))
				throw new Fault("rate_limit_exceeded", "This account has reached its limit of concurrent requests.", {
					retryAfterS: 1,
				});
		},
		enter(accountId) {
			open.add(accountId, 1);
			all += 1;
		},
		leave(accountId) {
			assert(open.of(accountId) > 0, "who leaves has entered");
			open.add(accountId, -1);
			all -= 1;
		},
	};
}
