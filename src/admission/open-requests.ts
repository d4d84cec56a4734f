import { createFairPool, type FairPool } from "../base/fair-pool.ts";
import { Fault } from "../base/fault.ts";
import type { ServiceLimits } from "../catalog/service-limits.ts";

/** Requests that are admitted and not settled, including those that wait. Their number is limited to bound memory. */
export type OpenRequests = Pick<FairPool, "check" | "add" | "giveBack">;

export function createOpenRequests(deps: {
	limits(): Pick<ServiceLimits, "openRequestsMax" | "accountShare">;
}): OpenRequests {
	return createFairPool({
		size: () => deps.limits().openRequestsMax,
		share: () => deps.limits().accountShare,
		own: () =>
			new Fault("rate_limit_exceeded", "This account has reached its limit of concurrent requests.", {
				retryAfterS: 1,
			}),
		full: () =>
			new Fault("overloaded", "The service has reached its limit of concurrent requests. Try again shortly.", {
				retryAfterS: 1,
			}),
	});
}
