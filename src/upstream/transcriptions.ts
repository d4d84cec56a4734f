import { mapInTurns } from "../base/time-slice.ts";
import type { CallContext } from "./call/attempt.ts";
import { crashFailure, isErrorBody, unreadableAnswer } from "./call/failure.ts";
import { isEndMarker, parseEvent } from "./call/sse-reader.ts";
import type { StreamCall } from "./call/stream.ts";
import type { StreamGatherer, StreamReader, StreamWire } from "./call/stream-wire.ts";
import type { UnaryCall } from "./call/unary.ts";
import type { Dialect } from "./dialects.ts";
import type { Replica } from "./replicas/replica.ts";
import { type ReportedUsage, readUsage } from "./usage.ts";
import { asArray, asCount, asObject, asObjects, asText, type JsonObject, parseJson } from "./wire-value.ts";

export interface TranscriptionRequest {
	readonly file: Blob;
	readonly fileName: string;
	/** True: requests segments with times. */
	readonly verbose: boolean;
	/** Further fields that the model supports; a list is sent as repeated `name[]`. */
	readonly fields: Readonly<Record<string, string | readonly string[]>>;
}

/** Usage that the server reported; undefined for values that it omitted. */
export interface TranscriptionUsage {
	readonly seconds: number | undefined;
	readonly usage: ReportedUsage | undefined;
}

export interface TranscriptionReply extends TranscriptionUsage {
	readonly text: string;
	readonly language: string | undefined;
	readonly durationS: number | undefined;
	readonly segments: readonly TranscriptionSegment[] | undefined;
	readonly words: readonly JsonObject[] | undefined;
}

export interface TranscriptionChunk {
	readonly delta: string;
	readonly outputBytes: number;
	/** Only on the last event, if the server counts seconds. */
	readonly seconds?: number;
}

const PATH = "/audio/transcriptions";
const TOKENS_MAX = 2 ** 31 - 1;
/** Maximum number of segments; enough for a recording of a day. */
const SEGMENTS_MAX = 100_000;
const SECONDS_MAX = 10_000_000;

export function transcriptionCall(request: TranscriptionRequest, context: CallContext): UnaryCall<TranscriptionReply> {
	return {
		context,
		run: (ask, replica) =>
			ask.post({
				path: PATH,
				body: formOf(request, replica, false),
				read: readTranscriptionInTurns,
				gather: gatherTranscription,
			}),
	};
}

export function transcriptionStream(
	request: TranscriptionRequest,
	context: CallContext,
): StreamCall<TranscriptionChunk> {
	return { context, wire: WIRE, body: (replica) => formOf(request, replica, true) };
}

/** Builds the form for one attempt. All attempts share the file's bytes. */
function formOf(request: TranscriptionRequest, replica: Replica, stream: boolean): FormData {
	const form = new FormData();
	form.set("model", replica.spec().model);
	for (const [name, value] of Object.entries(request.fields)) {
		if (typeof value === "string") form.set(name, value);
		else for (const item of value) form.append(`${name}[]`, item);
	}
	form.set("response_format", request.verbose ? "verbose_json" : "json");
	if (stream) {
		form.set("stream", "true");
		for (const [name, value] of Object.entries(replica.dialect.transcriptionStreamFields)) form.set(name, value);
	}
	form.set("file", request.file, request.fileName);
	return form;
}

async function readTranscriptionInTurns(parsed: unknown): Promise<TranscriptionReply> {
	const { segments, words } = asObject(parsed) ?? {};
	if ((asArray(segments)?.length ?? 0) > SEGMENTS_MAX) throw unreadableAnswer("a transcription in too many segments");
	return {
		...readTranscription(parsed),
		segments: Array.isArray(segments) ? await mapInTurns(asObjects(segments), segmentOf) : undefined,
		words: Array.isArray(words) ? await mapInTurns(asObjects(words), wordOf) : undefined,
	};
}

function readTranscription(parsed: unknown): TranscriptionReply {
	const body = asObject(parsed);
	const text = asText(body?.text);
	if (body === undefined || text === undefined) throw unreadableAnswer("a transcription without text");
	const durationS = secondsOf(body.duration);
	const { usage, seconds } = usageOf(body.usage);
	return {
		text,
		language: asText(body.language),
		durationS,
		segments: undefined,
		words: undefined,
		usage,
		seconds: seconds ?? (durationS === undefined ? undefined : Math.ceil(durationS)),
	};
}

/** Seconds as a number; vLLM sends the duration as text. */
function secondsOf(value: unknown): number | undefined {
	const seconds = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
	return typeof seconds === "number" && seconds >= 0 && seconds <= SECONDS_MAX ? seconds : undefined;
}

/** Reads `{type: "duration", seconds}`, or token counts. */
function usageOf(value: unknown): TranscriptionUsage {
	const seconds = secondsOf(asObject(value)?.seconds);
	return { seconds: seconds === undefined || seconds === 0 ? undefined : Math.ceil(seconds), usage: readUsage(value) };
}

export type TranscriptionSegment = ReturnType<typeof segmentOf>;

function segmentOf(raw: JsonObject, index: number) {
	const tokens = asArray(raw.tokens) ?? [];
	return {
		id: asCount(raw.id, TOKENS_MAX) ?? index,
		seek: numberOf(raw.seek),
		start: numberOf(raw.start),
		end: numberOf(raw.end),
		temperature: numberOf(raw.temperature),
		avg_logprob: numberOf(raw.avg_logprob),
		compression_ratio: numberOf(raw.compression_ratio),
		no_speech_prob: numberOf(raw.no_speech_prob),
		text: asText(raw.text) ?? "",
		tokens: tokens.filter((token) => asCount(token, TOKENS_MAX) !== undefined),
	};
}

function wordOf(raw: JsonObject): JsonObject {
	return { word: asText(raw.word) ?? "", start: numberOf(raw.start), end: numberOf(raw.end) };
}

/** Reads a time; some servers send it as text. */
function numberOf(value: unknown): number {
	const number = typeof value === "string" ? Number(value) : value;
	return typeof number === "number" && Number.isFinite(number) ? number : 0;
}

const WIRE: StreamWire<TranscriptionChunk> = {
	path: PATH,
	reader: createTranscriptionReader,
	whole(text, dialect) {
		const body = asObject(parseJson(text));
		if (body !== undefined && isErrorBody(body)) throw dialect.failureOfError(body);
		const reply = readTranscription(body);
		return { chunk: chunkOf(reply.text, reply.seconds), usage: reply.usage };
	},
};

/** Reads OpenAI's `transcript.text.*` events, or vLLM's `transcription.chunk` in the chat format. */
function createTranscriptionReader(dialect: Dialect): StreamReader<TranscriptionChunk> {
	let finished = false;
	let ended = false;
	let text = "";
	let usage: ReportedUsage | undefined;
	let isCounted = false;

	function accept(payload: string): TranscriptionChunk | undefined {
		if (ended || payload === "") return undefined;
		if (isEndMarker(payload)) {
			if (!finished) throw crashFailure("the end marker came before the end of the text");
			ended = true;
			return undefined;
		}
		const event = parseEvent(payload);
		if (isErrorBody(event)) throw dialect.failureOfError(event);
		const counted = usageOf(event.usage);
		usage = counted.usage ?? usage;
		isCounted ||= usage !== undefined || counted.seconds !== undefined;
		if (event.type === "transcript.text.done") return done(asText(event.text) ?? text, counted.seconds);
		const delta =
			event.type === undefined ? deltaOfChat(event) : event.type === "transcript.text.delta" ? event.delta : "";
		text += asText(delta) ?? "";
		const chunk = chunkOf(asText(delta) ?? "", counted.seconds);
		return chunk.delta === "" && chunk.seconds === undefined ? undefined : chunk;
	}

	/** Returns the part of the final text that no earlier event contained. */
	function done(whole: string, seconds: number | undefined): TranscriptionChunk | undefined {
		finished = true;
		ended = true;
		const rest = whole.startsWith(text) ? whole.slice(text.length) : "";
		return rest === "" && seconds === undefined ? undefined : chunkOf(rest, seconds);
	}

	function deltaOfChat(event: JsonObject): unknown {
		const choice = asObjects(event.choices)[0];
		if (choice?.finish_reason !== undefined && choice.finish_reason !== null) finished = true;
		return asObject(choice?.delta)?.content;
	}

	return {
		accept,
		ended: () => ended,
		finished: () => finished,
		usage: () => usage,
		usageIsFinal: () => finished && isCounted,
	};
}

function gatherTranscription(): StreamGatherer<TranscriptionReply, TranscriptionChunk> {
	const none = { language: undefined, durationS: undefined, segments: undefined, words: undefined };
	let text = "";
	let seconds: number | undefined;
	return {
		wire: WIRE,
		add(chunk) {
			text += chunk.delta;
			seconds = chunk.seconds ?? seconds;
			return chunk.outputBytes;
		},
		answer: (usage) => ({ ...none, text, seconds, usage }),
	};
}

function chunkOf(delta: string, seconds: number | undefined): TranscriptionChunk {
	return { delta, outputBytes: Buffer.byteLength(delta), ...(seconds === undefined ? {} : { seconds }) };
}
