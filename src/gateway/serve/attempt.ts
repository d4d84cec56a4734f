import { assert } from "../../base/assert.ts";
import { chunkedJsonBody } from "../../base/chunked-json-body.ts";
import type { TimeSlice } from "../../base/time-slice.ts";
import type { Model } from "../../catalog/model.ts";
import type { OutputChunk } from "../../upstream/call/stream-wire.ts";
import type { CountedReply } from "../../upstream/call/unary.ts";
import { coverExcess, createOutcome, settledBill, settleFailedRequest } from "../bill/bill.ts";
import { answerHeaders } from "../headers.ts";
import { createCallContext, type RequestContext, type ServeDeps, type ServedRequest } from "./context.ts";
import type { EndpointInput, InferenceEndpoint, RequestBody } from "./endpoint.ts";
import { withBatchRates } from "./model-for.ts";
import { streamAnswer } from "./stream-answer.ts";
import type { LongBody } from "./unread-answers.ts";

/**
 * Sends a request to a model and returns the answer. If it throws or rejects, the request was settled without a charge.
 * Not an async function, because that would keep its argument `body` in memory until the answer.
 */
export function attemptModel<
	Body extends RequestBody,
	Input extends EndpointInput,
	Reply extends CountedReply,
	Chunk extends OutputChunk,
>(
	deps: ServeDeps,
	endpoint: InferenceEndpoint<Body, Input, Reply, Chunk>,
	context: RequestContext,
	body: Body,
	named: Model,
): Promise<Response> {
	// Chosen once, before admission, so that reservation and settlement use the same rate card.
	const priced = context.key?.account.prices?.of(named, deps.clock.wallMs()) ?? named;
	const model = context.connection.line === undefined ? priced : withBatchRates(priced);
	const read = endpoint.read(body, model);
	if (read instanceof Promise) return answerLater(deps, endpoint, context, model, read);
	return body.timeSlice === undefined
		? answer(deps, endpoint, context, model, read)
		: answerLater(deps, endpoint, context, model, withTurn(body.timeSlice, read));
}

/** A separate function: a closure in `attemptModel` would keep its variables alive for every request. */
function answerLater<
	Body extends RequestBody,
	Input extends EndpointInput,
	Reply extends CountedReply,
	Chunk extends OutputChunk,
>(
	deps: ServeDeps,
	endpoint: InferenceEndpoint<Body, Input, Reply, Chunk>,
	context: RequestContext,
	model: Model,
	reading: Promise<Input>,
): Promise<Response> {
	return reading.then((input) => answer(deps, endpoint, context, model, input));
}

async function withTurn<Input>(timeSlice: TimeSlice, read: Input): Promise<Input> {
	await timeSlice.next();
	return read;
}

async function answer<
	Body extends RequestBody,
	Input extends EndpointInput,
	Reply extends CountedReply,
	Chunk extends OutputChunk,
>(
	deps: ServeDeps,
	endpoint: InferenceEndpoint<Body, Input, Reply, Chunk>,
	context: RequestContext,
	model: Model,
	input: Input,
): Promise<Response> {
	const { key, connection, requestId } = context;
	assert(key !== undefined, "a request is authenticated before it is sent");
	context.model = model;
	const decision = deps.admission.admit({
		id: context.uuid,
		key,
		model,
		endpoint: endpoint.name,
		streamed: input.stream === true,
		upperBound: endpoint.upperBound(input, model),
		choices: input.choices ?? 1,
		isAgain: context.isAgain,
		batchId: connection.line?.batchId,
	});
	const admitted = decision instanceof Promise ? await decision : decision;
	context.isAdmitted = true;
	context.trace?.admitted({ id: context.uuid, requestId, model: model.id, account: key.accountId, key: key.id });
	const createdS = Math.floor(deps.clock.wallMs() / 1000);
	const exchange: ServedRequest<Input> = { context, model, input, admitted, createdS };
	let silence = input.stream === true ? undefined : deps.clients.silentConnections.begin(connection);
	try {
		if (input.stream === true) return await streamAnswer(deps, endpoint, exchange);

		const { whole } = endpoint;
		const call = whole.call(exchange, createCallContext(deps, exchange, endpoint, connection.request.signal));
		const { reply, replica, bytes } = await deps.upstreams.call(model, call);
		const outcome = whole.bill(exchange, reply);
		const covered = coverExcess(admitted, outcome.cost);
		if (covered) await covered;
		const totalMs = deps.clock.monotonicMs() - context.startedMs;
		const facts = { ending: "finished", status: 200, replica, firstMs: totalMs, totalMs } as const;
		// Settled before the answer is sent, so that a delivered answer is always charged.
		const bill = settledBill(deps.admission.settle(admitted, createOutcome(outcome, facts)));
		const { hold } = admitted;
		const recorded = hold.ledger.settledDurable(hold) ?? hold.ledger.durable(hold);
		if (recorded) await recorded;
		let body: string | LongBody = chunkedJsonBody(whole.write(exchange, reply, bill));
		// Counts unread answers of clients only: a batch line reads its answer immediately.
		if (typeof body !== "string" && connection.line === undefined) {
			if (silence !== undefined) deps.clients.silentConnections.end(connection, silence);
			silence = undefined;
			body = deps.clients.unreadAnswers.passed(body, bytes, { accountId: key.accountId, connection });
		}
		return new Response(body, {
			headers: answerHeaders(requestId, input.ignored, whole.contentType?.(input) ?? "application/json"),
		});
	} catch (error) {
		settleFailedRequest(deps, exchange, error);
		throw error;
	} finally {
		if (input.stream !== true) {
			endpoint.whole.over?.(input);
			if (silence !== undefined) deps.clients.silentConnections.end(connection, silence);
		}
	}
}
