import type { Ending } from "../ledger/event.ts";
import type { Bill } from "./bill.ts";
import { FREE_BILL, outcomeOf } from "./bill.ts";
import { faultOf, statusOf } from "./error-body.ts";
import type { ExchangeDeps } from "./exchange.ts";
import { IDLE_TIMEOUT_S } from "./exchange.ts";
import type { StreamedExchange } from "./relay.ts";
import { endingOf } from "./relay.ts";

/** An admitted request whose answer leaves in one piece. */
export type MeteredExchange = Omit<StreamedExchange, "ask" | "requestId">;

/**
 * Sends one admitted request and settles it, once, whatever happens: with `billOf` if it was answered, else at no
 * charge. Nothing is delivered before it is settled.
 */
export async function meteredCall<Reply>(
	deps: ExchangeDeps,
	exchange: MeteredExchange,
	send: (signal: AbortSignal) => Promise<{ reply: Reply; replica: string | undefined }>,
	billOf: (reply: Reply) => Bill,
): Promise<{ reply: Reply; bill: Bill }> {
	const { connection, admitted } = exchange;
	const { hold } = admitted;
	const facts = (ending: Ending, status: number, replica: string | undefined) => {
		const totalMs = deps.clock.monotonicMs() - exchange.startedMs;
		return { ending, status, replica, firstMs: ending === "finished" ? totalMs : null, totalMs };
	};
	// The answer may take as long as the upstream's deadlines allow, and until then the connection is silent.
	connection.setIdleTimeout(0);
	try {
		const { reply, replica } = await send(connection.request.signal);
		const bill = billOf(reply);
		deps.admission.settle(admitted, outcomeOf(bill, facts("finished", 200, replica)));
		const recorded = hold.ledger.settledDurable(hold) ?? hold.ledger.durable(hold);
		if (recorded) await recorded;
		return { reply, bill };
	} catch (error) {
		const fault = faultOf(error);
		if (hold.state === "held")
			deps.admission.settle(admitted, outcomeOf(FREE_BILL, facts(endingOf(error), statusOf(fault), undefined)));
		throw fault;
	} finally {
		connection.setIdleTimeout(IDLE_TIMEOUT_S);
	}
}
