import { NO_QUANTITIES, type Quantities } from "../../admission/price.ts";
import { completionTokensEstimate } from "../../admission/prompt-bound.ts";
import type { Model } from "../../catalog/model.ts";
import { jsonUsd } from "../../money/nano-usd.ts";
import {
	type TranscriptionChunk,
	type TranscriptionReply,
	type TranscriptionSegment,
	type TranscriptionUsage,
	transcriptionCall,
	transcriptionStream,
} from "../../upstream/transcriptions.ts";
import { type Bill, limitedCount, limitedPromptUsage, type OutputSize, unitBill } from "../bill/bill.ts";
import { readForm } from "../body/bytes-body.ts";
import { errorBody } from "../error-body.ts";
import type { ServedRequest } from "../serve/context.ts";
import type { InferenceEndpoint, Relay } from "../serve/endpoint.ts";
import { type AudioDuration, audioDuration } from "./audio-duration.ts";
import {
	audioTokensMax,
	formFields,
	INPUT_TOKENS_PER_SECOND_TYPICAL,
	readTranscriptionRequest,
	type TranscriptionInput,
	type TranscriptionRequest,
} from "./transcriptions-request.ts";

export const transcriptions: InferenceEndpoint<
	{ readonly form: FormData; readonly value: ReturnType<typeof formFields> },
	TranscriptionInput,
	TranscriptionReply,
	TranscriptionChunk
> = {
	name: "transcription",
	kind: "transcription",
	promptField: "prompt",
	async readBody(...request) {
		const form = await readForm(...request);
		return { form, value: formFields(form) };
	},
	async read({ form, value }, model) {
		const request = readTranscriptionRequest(form, value, model);
		return { ...request, duration: await audioDuration(request.file) };
	},
	upperBound({ fields, duration }, model) {
		const promptText = typeof fields.prompt === "string" ? fields.prompt : "";
		const audioSeconds = duration.secondsMax;
		return { ...NO_QUANTITIES, requests: 1, audioSeconds, ...audioTokensMax(model, duration, promptText) };
	},
	whole: {
		call: (exchange, context) => transcriptionCall(requestOf(exchange), context),
		bill: ({ model, input, admitted }, reply) =>
			billOfAudio(model, input.duration, reply, sizeOf(reply.text), admitted.request.upperBound),
		write: (exchange, reply, bill) =>
			isJson(exchange.input) ? objectOf(exchange, reply, bill) : textOf(exchange.input, reply),
		contentType: (input) => (isJson(input) ? "application/json" : "text/plain; charset=utf-8"),
	},
	streamed: {
		call: (exchange, context) => transcriptionStream(requestOf(exchange), context),
		relay: transcriptionRelay,
	},
};

function isJson({ format }: TranscriptionRequest): boolean {
	return format === "json" || format === "verbose_json";
}

/** Requests segments for subtitles, which the gateway writes: some servers do not support subtitle formats. */
function requestOf({ input }: ServedRequest<TranscriptionInput>) {
	const { file, fileName, fields, format } = input;
	return { file, fileName, fields, verbose: format !== "json" && format !== "text" };
}

function objectOf({ input, model }: ServedRequest<TranscriptionInput>, reply: TranscriptionReply, bill: Bill): object {
	const usage = audioUsage(model, bill);
	if (input.format === "json") return { text: reply.text, usage };
	return {
		task: "transcribe",
		language: reply.language ?? (typeof input.fields.language === "string" ? input.fields.language : ""),
		duration: reply.durationS ?? input.duration.secondsLikely,
		text: reply.text,
		segments: reply.segments ?? [],
		...(reply.words === undefined ? {} : { words: reply.words }),
		usage,
	};
}

function textOf({ format }: TranscriptionInput, reply: TranscriptionReply): string | Generator<string> {
	if (format === "text") return `${reply.text}\n`;
	const { segments = [], durationS = 0, text } = reply;
	const cues = segments.length > 0 ? segments : [{ start: 0, end: durationS, text }];
	return format === "srt" ? srtOf(cues) : vttOf(cues);
}

type SubtitleCue = Pick<TranscriptionSegment, "start" | "end" | "text">;

function* srtOf(cues: readonly SubtitleCue[]): Generator<string> {
	for (const [at, { start, end, text }] of cues.entries())
		yield `${at + 1}\n${timeOf(start, ",")} --> ${timeOf(end, ",")}\n${lineOf(text)}\n\n`;
}

function* vttOf(cues: readonly SubtitleCue[]): Generator<string> {
	yield "WEBVTT\n\n";
	for (const { start, end, text } of cues) yield `${timeOf(start, ".")} --> ${timeOf(end, ".")}\n${lineOf(text)}\n\n`;
}

/** Removes blank lines and arrows, because subtitles use them to separate cues. */
function lineOf(text: string): string {
	const lines = text.split(/[\r\n]/).map((line) => line.trim());
	return lines.filter(Boolean).join("\n").replaceAll("-->", "->");
}

function timeOf(seconds: number, point: string): string {
	const ms = Math.max(0, Math.round(seconds * 1000));
	const two = (value: number) => String(value).padStart(2, "0");
	const hours = two(Math.floor(ms / 3_600_000));
	const minutes = two(Math.floor(ms / 60_000) % 60);
	return `${hours}:${minutes}:${two(Math.floor(ms / 1000) % 60)}${point}${String(ms % 1000).padStart(3, "0")}`;
}

const DONE = "data: [DONE]\n\n";
const eventOf = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

/** Writes a streamed transcription as OpenAI's events and computes its charge. */
function transcriptionRelay({ model, input, admitted }: ServedRequest<TranscriptionInput>): Relay<TranscriptionChunk> {
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
		bill: (usage, size, finished) => billOfAudio(model, duration, { seconds, usage }, size, upperBound, finished),
		// Servers process the whole recording before they send its words, so its full length is charged after a crash.
		costAt(now, output) {
			const usage = { ...now, completionTokens: output };
			return billOfAudio(model, duration, { seconds, usage }, sizeOf(""), upperBound).cost;
		},
	};
}

const sizeOf = (text: string): OutputSize => ({ bytes: Buffer.byteLength(text), chunks: 0 });

/** Speech has about fifteen bytes of text per second. The higher figure here results in fewer charged seconds. */
const TEXT_BYTES_PER_SECOND = 20;

/**
 * A server's count above the recording's length is ignored. For an interrupted transcription (`isWhole` false) the
 * charge is the estimated seconds of the delivered words.
 */
function billOfAudio(
	model: Model,
	{ secondsMax, secondsLikely }: AudioDuration,
	{ seconds: reported, usage }: TranscriptionUsage,
	{ bytes, chunks, isBroken }: OutputSize,
	upperBound: Quantities,
	isWhole = true,
): Bill {
	const secondsCounted = isWhole && reported !== undefined && reported <= secondsMax;
	const seconds = isWhole
		? Math.min(reported ?? secondsLikely, secondsMax)
		: Math.min(secondsLikely, Math.ceil(bytes / TEXT_BYTES_PER_SECOND));
	const { input, cachedInput, output, audioSecond } = model.rateCard;
	const tokensAreFree = input === 0 && cachedInput === 0 && output === 0;
	const tokensOfText = Math.min(completionTokensEstimate(bytes), isBroken ? chunks : Number.POSITIVE_INFINITY);
	const likely = {
		promptTokens: tokensAreFree ? 0 : Math.min(seconds * INPUT_TOKENS_PER_SECOND_TYPICAL, upperBound.promptTokens),
		completionTokens: tokensAreFree ? 0 : Math.min(tokensOfText, upperBound.completionTokens),
	};
	const prompt = limitedPromptUsage(usage, upperBound.promptTokens, likely.promptTokens);
	const completion = limitedCount(usage, "completionTokens", upperBound.completionTokens);
	const used: Quantities = {
		...NO_QUANTITIES,
		requests: 1,
		audioSeconds: seconds,
		...prompt.tokens,
		completionTokens: completion.tokens ?? likely.completionTokens,
	};
	const counted =
		(audioSecond === 0 || secondsCounted) && (tokensAreFree || (prompt.isBelieved && completion.isBelieved));
	return unitBill(model, used, counted);
}

/** `usage` by duration or by tokens (OpenAI's two forms), as the model's rates require, with the charge added. */
function audioUsage(model: Model, bill: Bill): object {
	const { promptTokens, completionTokens, units, cost, basis } = bill;
	if (model.rateCard.audioSecond > 0) return { type: "duration", seconds: units, cost: jsonUsd(cost), basis };
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
