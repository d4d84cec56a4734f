import type { Ending } from "../../ledger/event.ts";
import { UpstreamFailure } from "../../upstream/call/failure.ts";
import { FREE_BILL, outcomeOf } from "../bill/bill.ts";
import { faultOf, statusOf } from "../error-body.ts";
import type { Exchange, ServeDeps } from "./context.ts";

/** Settles a failed, admitted request without charge; does nothing if it is already settled. */
export function settleFailed(deps: ServeDeps, { context, admitted }: Exchange, error: unknown): void {
	if (admitted.hold.state !== "held") return;
	const totalMs = deps.clock.monotonicMs() - context.startedMs;
	const facts = {
		ending: endingOf(error),
		status: statusOf(faultOf(error)),
		replica: undefined,
		firstMs: null,
		totalMs,
	};
	deps.admission.settle(admitted, outcomeOf(FREE_BILL, facts));
}

/** The ending in the books for a failure. */
export function endingOf(error: unknown): Ending {
	if (!(error instanceof UpstreamFailure)) return "upstream_failed";
	if (error.kind === "died") return "upstream_died";
	if (error.kind === "timeout") return "upstream_silent";
	if (error.kind === "stopping") return "shutdown";
	return error.kind === "aborted" ? "client_left" : "upstream_failed";
}
