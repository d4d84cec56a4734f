import { bodyInTurns } from "../../base/write-in-turns.ts";
import type { Ending } from "../../ledger/event.ts";
import { UpstreamFailure } from "../../upstream/call/failure.ts";
import { FREE_BILL, outcomeOf, settledBill } from "../bill/bill.ts";
import { IDLE_TIMEOUT_S } from "../connection.ts";
import { faultOf, statusOf } from "../error-body.ts";
import { answerHeaders } from "../headers.ts";
import type { Exchange, ServeDeps } from "./context.ts";
import { coverExcess } from "./cover-excess.ts";
import type { EndpointInput, WholeAnswer } from "./endpoint.ts";

/**
 * Sends one admitted request and gives its answer in one piece, which leaves after it was settled and not before.
 * Rejects, perhaps unsettled, if there is no answer: `settleFailed` is for that.
 */
export async function wholeAnswer<Input extends EndpointInput, Reply>(
	deps: ServeDeps,
	whole: WholeAnswer<Input, Reply>,
	exchange: Exchange<Input>,
): Promise<Response> {
	const { context, admitted, input } = exchange;
	const { connection, requestId } = context;
	const { hold } = admitted;
	try {
		// The answer may take as long as the upstream's deadlines allow, and until then the connection is silent.
		connection.setIdleTimeout(0);
		const { reply, replica } = await whole.send(deps.upstreams, exchange, connection.request.signal);
		const outcome = whole.bill(exchange, reply);
		const covered = coverExcess(admitted, outcome.cost);
		if (covered) await covered;
		const totalMs = deps.clock.monotonicMs() - context.startedMs;
		const facts = { ending: "finished", status: 200, replica, firstMs: totalMs, totalMs } as const;
		const bill = settledBill(deps.admission.settle(admitted, outcomeOf(outcome, facts)));
		const recorded = hold.ledger.settledDurable(hold) ?? hold.ledger.durable(hold);
		if (recorded) await recorded;
		return new Response(bodyInTurns(whole.write(exchange, reply, bill)), {
			headers: answerHeaders(requestId, input.ignored, whole.contentType?.(input) ?? "application/json"),
		});
	} finally {
		connection.setIdleTimeout(IDLE_TIMEOUT_S);
	}
}

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
	return error.kind === "aborted" ? "client_left" : "upstream_failed";
}
