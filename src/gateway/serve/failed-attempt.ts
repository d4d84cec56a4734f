import type { Ending } from "../../ledger/event.ts";
import { UpstreamFailure } from "../../upstream/call/failure.ts";
import { FREE_BILL, outcomeOf } from "../bill/bill.ts";
import { faultOf, statusOf } from "../error-body.ts";
import type { Exchange, ServeDeps } from "./context.ts";

/** Settles, at no charge, an admitted request that came to nothing; does nothing if it is settled already. */
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

/** What a failure means for the bill. */
export function endingOf(error: unknown): Ending {
	if (!(error instanceof UpstreamFailure)) return "upstream_failed";
	if (error.kind === "died") return "upstream_died";
	if (error.kind === "timeout") return "upstream_silent";
	if (error.kind === "stopping") return "shutdown";
	return error.kind === "aborted" ? "client_left" : "upstream_failed";
}
