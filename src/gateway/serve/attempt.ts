import { assert } from "../../base/assert.ts";
import { nextTurn } from "../../base/next-turn.ts";
import type { Model } from "../../catalog/model.ts";
import type { OutputChunk } from "../../upstream/call/stream-wire.ts";
import type { Exchange, RequestContext, ServeDeps } from "./context.ts";
import type { EndpointInput, InferenceEndpoint, RequestBody } from "./endpoint.ts";
import { pricedForBatches } from "./model-for.ts";
import { streamAnswer } from "./stream-answer.ts";
import { settleFailed, wholeAnswer } from "./whole-answer.ts";

/**
 * One request to one model, from its body to the last byte. Rejects if there is no answer; whatever was admitted is
 * settled then, at no charge.
 */
export async function attempt<Body extends RequestBody, Input extends EndpointInput, Reply, Chunk extends OutputChunk>(
	deps: ServeDeps,
	endpoint: InferenceEndpoint<Body, Input, Reply, Chunk>,
	context: RequestContext,
	{ body, model: named }: { body: Body; model: Model },
): Promise<Response> {
	const { key } = context;
	const { line } = context.connection;
	const model = line === undefined ? named : pricedForBatches(named);
	assert(key !== undefined, "a request is authenticated before it is sent");
	const read = endpoint.read(body, model);
	const input = read instanceof Promise ? await read : read;
	if (body.isLarge) await nextTurn();

	const decision = deps.admission.admit({
		id: context.uuid,
		key,
		model,
		endpoint: endpoint.name,
		streamed: input.stream === true,
		upperBound: endpoint.upperBound(input, model),
		choices: input.choices ?? 1,
		isAgain: context.isAgain,
		...(line === undefined ? {} : { batchId: line.batchId }),
	});
	const admitted = decision instanceof Promise ? await decision : decision;
	context.isAdmitted = true;
	context.trace?.admitted({
		id: context.uuid,
		requestId: context.requestId,
		model: model.id,
		account: key.accountId,
		key: key.id,
	});
	const exchange: Exchange<Input> = {
		context,
		model,
		input,
		admitted,
		createdS: Math.floor(deps.clock.wallMs() / 1000),
	};
	try {
		return await (input.stream === true
			? streamAnswer(deps, endpoint.streamed, exchange)
			: wholeAnswer(deps, endpoint.whole, exchange));
	} catch (error) {
		settleFailed(deps, exchange, error);
		throw error;
	}
}
