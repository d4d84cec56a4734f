import type { TranscriptionChunk } from "../../upstream/transcriptions.ts";
import { errorBody } from "../error-body.ts";
import type { Exchange } from "../serve/context.ts";
import type { Relay } from "../serve/endpoint.ts";
import { audioUsage, billOfAudio, billOfPartialAudio } from "./transcriptions-bill.ts";
import type { TranscriptionInput } from "./transcriptions-request.ts";

const DONE = "data: [DONE]\n\n";
const eventOf = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

/** Writes and bills a streamed transcription, in OpenAI's events. */
export function transcriptionRelay({
	model,
	input,
	admitted,
}: Exchange<TranscriptionInput>): Relay<TranscriptionChunk> {
	const { duration } = input;
	const { upperBound } = admitted.request;
	let text = "";
	let seconds: number | undefined;
	return {
		chunks(chunks) {
			let events = "";
			for (const chunk of chunks) {
				text += chunk.delta;
				seconds = chunk.seconds ?? seconds;
				if (chunk.delta !== "") events += eventOf({ type: "transcript.text.delta", delta: chunk.delta });
			}
			return events;
		},
		end: (bill) => eventOf({ type: "transcript.text.done", text, usage: audioUsage(model, bill) }) + DONE,
		fail: (fault, bill, language) =>
			eventOf(errorBody(fault, language)) +
			eventOf({ type: "transcript.usage", usage: audioUsage(model, bill) }) +
			DONE,
		bill: (tokens, { bytes }, finished) =>
			finished
				? billOfAudio(model, duration, { seconds, tokens }, bytes, upperBound)
				: billOfPartialAudio(model, duration, tokens, bytes, upperBound),
		// Sound is processed ahead of its words, so after a crash all of it may be charged until the journal is settled.
		costAt(now, output) {
			const tokens = { ...now, completionTokens: output };
			return billOfAudio(model, duration, { seconds, tokens }, 0, upperBound).cost;
		},
	};
}
