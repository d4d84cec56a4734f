import type { Admitted } from "../../admission/admission.ts";
import { newRequestId } from "../../admission/admission.ts";
import { NO_QUANTITIES } from "../../admission/price.ts";
import { measureChat, promptTokensMax } from "../../admission/prompt-bound.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { KeyEntry } from "../../keys/key-entry.ts";
import { chatWhole } from "../../upstream/chat/chat-call.ts";
import type { Authenticate, KeyOf } from "../authenticate.ts";
import { billOf, FREE_BILL, outcomeOf, sizeOf } from "../bill.ts";
import { readJson } from "../body.ts";
import { faultOf, statusOf } from "../error-body.ts";
import type { Connection, Exchange, ExchangeDeps } from "../exchange.ts";
import { IDLE_TIMEOUT_S } from "../exchange.ts";
import { answerHeaders } from "../headers.ts";
import { modelFor } from "../model-for.ts";
import { refusal } from "../refusal.ts";
import { endingOf, streamChat } from "../relay.ts";
import { usageRecord } from "../usage-record.ts";
import { callOf } from "./chat-call.ts";
import { modelOf, readChatRequest } from "./chat-request.ts";

export interface ChatDeps extends ExchangeDeps {
	readonly authenticate: Authenticate;
	readonly keyOf: KeyOf;
	readonly catalog: Pick<Catalog, "current">;
}

/**
 * POST /v1/chat/completions, from the header to the last byte:
 * authenticate → read → admit (one synchronous block) → send → relay → settle. Postgres is not asked on the way.
 */
export async function chat(deps: ChatDeps, connection: Connection): Promise<Response> {
	const { uuid, requestId, hex } = newRequestId();
	const startedMs = deps.clock.monotonicMs();
	let key: KeyEntry | undefined;
	let asked: string | undefined;
	let admitted: Admitted | undefined;
	try {
		const known = deps.authenticate(connection);
		key = known instanceof Promise ? await known : known;
		const { value: body, text } = await readJson(connection.request, deps.limits().bodyBytesMax, deps.clock);
		asked = modelOf(body);
		const model = modelFor(deps.catalog.current(), asked, "chat");
		const ask = readChatRequest(body, model, text);
		const measure = measureChat(ask.messages, ask.rendered);
		const most = {
			...NO_QUANTITIES,
			requests: 1,
			prompt: promptTokensMax(measure, model),
			completion: ask.outputTokensMax * ask.choices,
		};
		const decision = deps.admission.admit({
			id: uuid,
			key,
			model,
			endpoint: "chat",
			streamed: ask.stream,
			most,
			choices: ask.choices,
		});
		admitted = decision instanceof Promise ? await decision : decision;
		const createdS = Math.floor(deps.clock.wallMs() / 1000);
		const exchange: Exchange = {
			connection,
			requestId,
			answerId: `chatcmpl-${hex}`,
			startedMs,
			createdS,
			model,
			ask,
			measure,
			admitted,
		};
		return ask.stream ? await streamChat(deps, exchange) : await answerChat(deps, exchange);
	} catch (error) {
		const attempt = { uuid, requestId, endpoint: "chat", key, asked, admitted: admitted !== undefined } as const;
		return refusal(deps, connection, attempt, faultOf(error), error);
	}
}

/** One admitted chat without a stream: nothing is delivered before it is settled. */
async function answerChat(deps: ExchangeDeps, exchange: Exchange): Promise<Response> {
	const { connection, model, measure, admitted } = exchange;
	const { hold } = admitted;
	const facts = (ending: ReturnType<typeof endingOf>, status: number, replica: string | undefined) => {
		const totalMs = deps.clock.monotonicMs() - exchange.startedMs;
		return { ending, status, replica, firstMs: ending === "finished" ? totalMs : null, totalMs };
	};
	try {
		// The answer may take as long as the upstream's deadlines allow, and until then the connection is silent.
		connection.setIdleTimeout(0);
		const { reply, replica } = await deps.upstreams.call(
			model,
			chatWhole(model, callOf(exchange, connection.request.signal)),
		);
		const bill = billOf(model, measure, reply.usage, sizeOf(reply), admitted.request.most.completion);
		deps.admission.settle(admitted, outcomeOf(bill, facts("finished", 200, replica)));
		const recorded = hold.ledger.settledDurable(hold) ?? hold.ledger.durable(hold);
		if (recorded) await recorded;
		const answer = {
			id: exchange.answerId,
			object: "chat.completion",
			created: exchange.createdS,
			model: model.id,
			choices: reply.choices,
			usage: usageRecord(bill.usage, bill.cost),
			system_fingerprint: null,
		};
		return new Response(JSON.stringify(answer), { headers: answerHeaders(exchange, "application/json") });
	} catch (error) {
		const fault = faultOf(error);
		if (hold.state === "held")
			deps.admission.settle(admitted, outcomeOf(FREE_BILL, facts(endingOf(error), statusOf(fault), undefined)));
		throw fault;
	} finally {
		connection.setIdleTimeout(IDLE_TIMEOUT_S);
	}
}
