import { NO_QUANTITIES, type Quantities } from "../../admission/price.ts";
import { completionTokensEstimate } from "../../admission/prompt-bound.ts";
import type { Model } from "../../catalog/model.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import type { TranscriptionUsage } from "../../upstream/transcriptions.ts";
import { type Bill, countedWithin, unitBill } from "../bill/bill.ts";
import type { AudioDuration } from "./audio-duration.ts";
import { audioTokensLikely } from "./transcriptions-request.ts";

/** Whether the deployment is priced by the second or by the token. */
function pricedBySecond(model: Model): boolean {
	return model.rateCard.audioSecond > 0;
}

/** Bill of a whole transcription. A server that counts more than the recording holds is wrong. */
export function billOfAudio(
	model: Model,
	duration: AudioDuration,
	usage: TranscriptionUsage,
	outputBytes: number,
	upperBound: Quantities,
): Bill {
	const counted = usage.seconds !== undefined && usage.seconds <= duration.secondsMax;
	const seconds = Math.min(usage.seconds ?? duration.secondsLikely, duration.secondsMax);
	return billOfParts(model, usage, seconds, outputBytes, upperBound, counted);
}

/** Speech has about fifteen bytes of text per second; a little less favours the customer. */
const TEXT_BYTES_PER_SECOND = 12;

/** Bill of an interrupted transcription: the estimated seconds of the delivered words. */
export function billOfPartialAudio(
	model: Model,
	duration: AudioDuration,
	tokens: TranscriptionUsage["tokens"],
	outputBytes: number,
	upperBound: Quantities,
): Bill {
	const seconds = Math.min(duration.secondsLikely, Math.ceil(outputBytes / TEXT_BYTES_PER_SECOND));
	return billOfParts(model, { seconds: undefined, tokens }, seconds, outputBytes, upperBound, false);
}

function billOfParts(
	model: Model,
	{ tokens }: TranscriptionUsage,
	seconds: number,
	outputBytes: number,
	upperBound: Quantities,
	secondsCounted: boolean,
): Bill {
	const { input, cachedInput, output, audioSecond } = model.rateCard;
	// Tokens matter only if they have a price.
	const tokensAreFree = input === 0 && cachedInput === 0 && output === 0;
	const likely = {
		promptTokens: tokensAreFree ? 0 : Math.min(audioTokensLikely(seconds), upperBound.promptTokens),
		completionTokens: tokensAreFree ? 0 : Math.min(completionTokensEstimate(outputBytes), upperBound.completionTokens),
	};
	const prompt = countedWithin(tokens?.promptTokens, upperBound.promptTokens);
	const completion = countedWithin(tokens?.completionTokens, upperBound.completionTokens);
	const used: Quantities = {
		...NO_QUANTITIES,
		requests: 1,
		audioSeconds: seconds,
		promptTokens: prompt.tokens ?? likely.promptTokens,
		cachedTokens: Math.min(tokens?.cachedTokens ?? 0, prompt.tokens ?? 0),
		completionTokens: completion.tokens ?? likely.completionTokens,
	};
	const counted =
		(audioSecond === 0 || secondsCounted) && (tokensAreFree || (prompt.isBelieved && completion.isBelieved));
	return unitBill(model, used, counted);
}

/** `usage` in one of OpenAI's two forms, by how the deployment is priced, with the charge added. */
export function audioUsage(model: Model, bill: Bill): object {
	const { promptTokens, completionTokens, units, cost, basis } = bill;
	if (pricedBySecond(model)) return { type: "duration", seconds: units, cost: jsonUsd(cost), basis };
	return {
		type: "tokens",
		input_tokens: promptTokens,
		output_tokens: completionTokens,
		total_tokens: promptTokens + completionTokens,
		input_token_details: { text_tokens: 0, audio_tokens: promptTokens },
		cost: jsonUsd(cost),
		basis,
	};
}
