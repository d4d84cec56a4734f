import { NO_QUANTITIES } from "../../admission/price.ts";
import {
	type TranscriptionChunk,
	type TranscriptionReply,
	transcriptionCall,
	transcriptionStream,
} from "../../upstream/transcriptions.ts";
import type { Bill } from "../bill/bill.ts";
import type { BodyReads } from "../body/body-reads.ts";
import type { TakesBytes } from "../body/bytes-body.ts";
import { readForm } from "../body/form-body.ts";
import type { Connection } from "../connection.ts";
import { errorBody } from "../error-body.ts";
import { callContext, type Exchange } from "../serve/context.ts";
import type { InferenceEndpoint, Relay } from "../serve/endpoint.ts";
import { audioDuration } from "./audio-duration.ts";
import { audioUsage, billOfAudio, billOfPartialAudio } from "./transcriptions-bill.ts";
import {
	audioTokensMax,
	formFields,
	readTranscriptionRequest,
	type TranscriptionInput,
	type TranscriptionRequest,
} from "./transcriptions-request.ts";

/** A form and its text fields by name. */
interface FormBody {
	readonly form: FormData;
	readonly value: Readonly<Record<string, string | string[]>>;
}

/** POST /v1/audio/transcriptions. */
export const transcriptions: InferenceEndpoint<FormBody, TranscriptionInput, TranscriptionReply, TranscriptionChunk> = {
	name: "transcription",
	kind: "transcription",
	promptField: "prompt",
	async readBody(
		connection: Connection,
		bytesMax: number,
		reads: BodyReads,
		takes: TakesBytes,
		bytes?: Uint8Array<ArrayBuffer>,
	) {
		const form = await readForm(connection, bytesMax, reads, takes, bytes);
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
		send: (upstreams, exchange, signal) =>
			upstreams.call(exchange.model, transcriptionCall(requestOf(exchange), callContext(exchange, signal))),
		bill: ({ model, input, admitted }, reply) =>
			billOfAudio(model, input.duration, reply, Buffer.byteLength(reply.text), admitted.request.upperBound),
		write: (exchange, reply, bill) =>
			isJson(exchange.input) ? objectOf(exchange, reply, bill) : textOf(exchange.input, reply),
		contentType: (input) => (isJson(input) ? "application/json" : "text/plain; charset=utf-8"),
	},
	streamed: {
		open: (upstreams, exchange, signal) =>
			upstreams.open(exchange.model, transcriptionStream(requestOf(exchange), callContext(exchange, signal))),
		relay: transcriptionRelay,
	},
};

function isJson({ format }: TranscriptionRequest): boolean {
	return format === "json" || format === "verbose_json";
}

/** Subtitles are made here from the segments: some servers do not know the formats. */
function requestOf({ input }: Exchange<TranscriptionInput>) {
	const { file, fileName, fields, format } = input;
	return { file, fileName, fields, verbose: format !== "json" && format !== "text" };
}

function objectOf({ input, model }: Exchange<TranscriptionInput>, reply: TranscriptionReply, bill: Bill): object {
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
	const segments = (reply.segments ?? []) as unknown as readonly Cue[];
	const cues = segments.length > 0 ? segments : [{ start: 0, end: reply.durationS ?? 0, text: reply.text }];
	return format === "srt" ? srtOf(cues) : vttOf(cues);
}

/** A subtitle cue; times in seconds. */
export interface Cue {
	readonly start: number;
	readonly end: number;
	readonly text: string;
}

/** SubRip. */
function* srtOf(cues: readonly Cue[]): Generator<string> {
	for (const [at, { start, end, text }] of cues.entries())
		yield `${at + 1}\n${timeOf(start, ",")} --> ${timeOf(end, ",")}\n${lineOf(text)}\n\n`;
}

/** WebVTT. */
function* vttOf(cues: readonly Cue[]): Generator<string> {
	yield "WEBVTT\n\n";
	for (const { start, end, text } of cues) yield `${timeOf(start, ".")} --> ${timeOf(end, ".")}\n${lineOf(text)}\n\n`;
}

/** A blank line or an arrow would end or begin a cue. */
function lineOf(text: string): string {
	return text
		.trim()
		.replace(/\s*[\r\n]+\s*/g, "\n")
		.replaceAll("-->", "->");
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

/** Writes and bills a streamed transcription, in OpenAI's events. */
function transcriptionRelay({ model, input, admitted }: Exchange<TranscriptionInput>): Relay<TranscriptionChunk> {
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
