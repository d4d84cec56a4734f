import { NO_QUANTITIES } from "../../admission/price.ts";
import type { Fault } from "../../base/fault.ts";
import type { TranscriptionChunk, TranscriptionReply } from "../../upstream/transcriptions.ts";
import { transcriptionCall, transcriptionStream } from "../../upstream/transcriptions.ts";
import { answering } from "../answering.ts";
import type { Bill } from "../bill.ts";
import type { ChatDeps } from "../chat/chat.ts";
import { modelOf } from "../chat/chat-request.ts";
import { errorBody } from "../error-body.ts";
import type { Connection } from "../exchange.ts";
import { readForm } from "../form-body.ts";
import { answerHeaders } from "../headers.ts";
import { meteredCall } from "../metered-call.ts";
import { assertKind, modelOfKind } from "../model-for.ts";
import type { StreamedExchange } from "../relay.ts";
import { streamAnswer } from "../relay.ts";
import type { AudioDuration } from "./audio-duration.ts";
import { audioDuration } from "./audio-duration.ts";
import type { Cue } from "./subtitles.ts";
import { srtOf, vttOf } from "./subtitles.ts";
import { audioUsage, billOfAudio, billOfPartialAudio } from "./transcriptions-bill.ts";
import type { TranscriptionAsked } from "./transcriptions-request.ts";
import { audioTokensMax, formFields, readTranscriptionRequest } from "./transcriptions-request.ts";

/** An admitted transcription. */
interface TranscriptionExchange extends StreamedExchange {
	readonly ask: TranscriptionAsked;
	readonly duration: AudioDuration;
}

/** POST /v1/audio/transcriptions: authenticate → read → admit → send → relay → settle. */
export function transcriptions(deps: ChatDeps, connection: Connection): Promise<Response> {
	return answering(deps, connection, { endpoint: "transcription", promptField: "prompt" }, async (begun) => {
		const { uuid, requestId, endpoint, startedMs, key } = begun;
		assertKind(deps.catalog.current(), "transcription");
		const form = await readForm(connection.request, deps.limits().bodyBytesMax, deps.clock);
		const body = formFields(form);
		begun.asked = modelOf(body);
		const model = modelOfKind(deps.catalog.current(), begun.asked, "transcription");
		const ask = readTranscriptionRequest(form, body, model);
		const duration = await audioDuration(ask.file);
		const promptBytes = typeof ask.fields.prompt === "string" ? Buffer.byteLength(ask.fields.prompt) : 0;
		const most = {
			...NO_QUANTITIES,
			requests: 1,
			audioSeconds: duration.secondsMax,
			...audioTokensMax(model, duration, promptBytes),
		};
		const decision = deps.admission.admit({ id: uuid, key, model, endpoint, streamed: ask.stream, most, choices: 1 });
		const admitted = decision instanceof Promise ? await decision : decision;
		begun.admitted = true;
		const exchange = { connection, requestId, startedMs, model, ask, duration, admitted };
		return ask.stream ? streamTranscription(deps, exchange) : answerTranscription(deps, exchange);
	});
}

async function answerTranscription(deps: ChatDeps, exchange: TranscriptionExchange): Promise<Response> {
	const { ask, model, duration, admitted } = exchange;
	const { reply, bill } = await meteredCall(
		deps,
		exchange,
		(signal) => deps.upstreams.call(model, transcriptionCall(requestOf(exchange), signal)),
		(answered) => billOfAudio(model, duration, answered, Buffer.byteLength(answered.text), admitted.request.most),
	);
	const json = ask.format === "json" || ask.format === "verbose_json";
	const text = json ? JSON.stringify(objectOf(exchange, reply, bill)) : textOf(ask, reply);
	return new Response(text, {
		headers: answerHeaders(exchange, json ? "application/json" : "text/plain; charset=utf-8"),
	});
}

/** Subtitles are made here from the segments and their times: not every server knows their formats. */
function requestOf({ ask, requestId }: TranscriptionExchange) {
	const { file, fileName, fields, format } = ask;
	return { file, fileName, fields, requestId, verbose: format !== "json" && format !== "text" };
}

function objectOf({ ask, model, duration }: TranscriptionExchange, reply: TranscriptionReply, bill: Bill): object {
	const usage = audioUsage(model, bill);
	if (ask.format === "json") return { text: reply.text, usage };
	return {
		task: "transcribe",
		language: reply.language ?? (typeof ask.fields.language === "string" ? ask.fields.language : ""),
		duration: reply.durationS ?? duration.secondsLikely,
		text: reply.text,
		segments: reply.segments ?? [],
		...(reply.words === undefined ? {} : { words: reply.words }),
		usage,
	};
}

function textOf({ format }: TranscriptionAsked, reply: TranscriptionReply): string {
	if (format === "text") return `${reply.text}\n`;
	const segments = (reply.segments ?? []) as unknown as readonly Cue[];
	const cues = segments.length > 0 ? segments : [{ start: 0, end: reply.durationS ?? 0, text: reply.text }];
	return format === "srt" ? srtOf(cues) : vttOf(cues);
}

const DONE = "data: [DONE]\n\n";
const eventOf = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

function streamTranscription(deps: ChatDeps, exchange: TranscriptionExchange): Promise<Response> {
	const { model, duration, admitted } = exchange;
	const { most } = admitted.request;
	let text = "";
	let seconds: number | undefined;
	return streamAnswer<TranscriptionChunk>(deps, exchange, {
		open: (signal) => deps.upstreams.open(model, transcriptionStream(requestOf(exchange), signal)),
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
		fail: (fault: Fault, bill) =>
			eventOf(errorBody(fault)) + eventOf({ type: "transcript.usage", usage: audioUsage(model, bill) }) + DONE,
		bill: (tokens, { bytes }, finished) =>
			finished
				? billOfAudio(model, duration, { seconds, tokens }, bytes, most)
				: billOfPartialAudio(model, duration, tokens, bytes, most),
		// Sound is taken in ahead of its words, so a crash may charge all of it until its journal is settled.
		costAt: (now, output) => {
			const tokens = { ...now.usage, completionTokens: output };
			return billOfAudio(model, duration, { seconds, tokens }, 0, most).cost;
		},
	});
}
