import { NO_QUANTITIES } from "../../admission/price.ts";
import type { Model } from "../../catalog/model.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import type { ImageReply } from "../../upstream/images.ts";
import { imageCall } from "../../upstream/images.ts";
import { answering } from "../answering.ts";
import type { Bill } from "../bill.ts";
import { readJsonObject } from "../body.ts";
import type { ChatDeps } from "../chat/chat.ts";
import { modelOf } from "../chat/chat-request.ts";
import type { Connection } from "../exchange.ts";
import { answerHeaders } from "../headers.ts";
import { meteredCall } from "../metered-call.ts";
import { assertKind, modelOfKind } from "../model-for.ts";
import { unitBill } from "../unit-bill.ts";
import type { ImagesAsked } from "./images-request.ts";
import { readImageRequest } from "./images-request.ts";

/** POST /v1/images/generations: authenticate → read → admit → send → settle. */
export function images(deps: ChatDeps, connection: Connection): Promise<Response> {
	return answering(deps, connection, { endpoint: "image", promptField: "prompt" }, async (begun) => {
		const { uuid, requestId, endpoint, startedMs, createdS, key } = begun;
		assertKind(deps.catalog.current(), "image");
		const body = await readJsonObject(connection.request, deps.limits().bodyBytesMax);
		begun.asked = modelOf(body);
		const model = modelOfKind(deps.catalog.current(), begun.asked, "image");
		const ask = readImageRequest(body, model);
		// Where output is priced in tokens too, an image has at most a context's worth of them.
		const completion = model.rateCard.output > 0 ? ask.n * model.contextLength : 0;
		const most = { ...NO_QUANTITIES, requests: 1, images: ask.n, prompt: ask.tokensMax, completion };
		const decision = deps.admission.admit({ id: uuid, key, model, endpoint, streamed: false, most, choices: 1 });
		const admitted = decision instanceof Promise ? await decision : decision;
		begun.admitted = true;
		const { reply, bill } = await meteredCall(
			deps,
			{ connection, startedMs, model, admitted },
			(signal) => deps.upstreams.call(model, imageCall({ ...ask, signal, requestId })),
			(answered) => billOfImages(model, ask, answered),
		);
		const answer = { created: createdS, data: reply.images, usage: usageOf(bill) };
		return new Response(JSON.stringify(answer), { headers: answerHeaders({ requestId, ask }, "application/json") });
	});
}

/** Images are counted here; tokens only matter where they have a price. */
function billOfImages(model: Model, ask: ImagesAsked, { images: made, usage }: ImageReply): Bill {
	const { input, cachedInput, output } = model.rateCard;
	const tokensAreFree = input === 0 && cachedInput === 0 && output === 0;
	const used = {
		...NO_QUANTITIES,
		requests: 1,
		images: made.length,
		prompt: usage?.inputTokens ?? (tokensAreFree ? 0 : ask.tokensEstimate),
		completion: usage?.outputTokens ?? 0,
	};
	return unitBill(model, used, usage !== undefined || tokensAreFree);
}

function usageOf({ usage, cost, units }: Bill) {
	return {
		input_tokens: usage.promptTokens,
		output_tokens: usage.completionTokens,
		total_tokens: usage.promptTokens + usage.completionTokens,
		input_tokens_details: { text_tokens: usage.promptTokens, image_tokens: 0 },
		images: units ?? 0,
		cost: jsonUsd(cost),
	};
}
