import { NO_QUANTITIES } from "../../admission/price.ts";
import type { TranscriptionChunk, TranscriptionReply } from "../../upstream/transcriptions.ts";
import { transcriptionCall, transcriptionStream } from "../../upstream/transcriptions.ts";
import type { Bill } from "../bill/bill.ts";
import type { BodyReads } from "../body/body-reads.ts";
import type { TakesBytes } from "../body/bytes-body.ts";
import { readForm } from "../body/form-body.ts";
import type { Connection } from "../connection.ts";
import { callContext, type Exchange } from "../serve/context.ts";
import type { InferenceEndpoint } from "../serve/endpoint.ts";
import { audioDuration } from "./audio-duration.ts";
import type { Cue } from "./subtitles.ts";
import { srtOf, vttOf } from "./subtitles.ts";
import { audioUsage, billOfAudio } from "./transcriptions-bill.ts";
import { transcriptionRelay } from "./transcriptions-relay.ts";
import type { TranscriptionInput, TranscriptionRequest } from "./transcriptions-request.ts";
import { audioTokensMax, formFields, readTranscriptionRequest } from "./transcriptions-request.ts";

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
