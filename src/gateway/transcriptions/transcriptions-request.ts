import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import type { Quantities } from "../../admission/price.ts";
import { measureText, promptTokensMax } from "../../admission/prompt-bound.ts";
import { Fault } from "../../base/fault.ts";
import type { Model } from "../../catalog/model.ts";
import { OWN_FIELDS } from "../../catalog/request-fields.ts";
import { assertBody, nullish, requestBody, shortText, supportedFields } from "../request-fields.ts";
import type { AudioDuration } from "./audio-duration.ts";

const TRANSCRIPTION_FORMATS = ["json", "text", "srt", "verbose_json", "vtt"] as const;

const Word = Type.String({ maxLength: 64 });
const Words = Type.Union([Word, Type.Array(Word, { maxItems: 16 })]);

/** Text fields of POST /v1/audio/transcriptions; `name[]` is read as `name`. */
export const TranscriptionRequestForm = requestBody({
	response_format: nullish(Type.Union(TRANSCRIPTION_FORMATS.map((format) => Type.Literal(format)))),
	stream: nullish(Type.Union([Type.Literal("true"), Type.Literal("false")])),
	language: nullish(Word),
	prompt: shortText(32_000),
	temperature: nullish(Type.String({ pattern: "^(0|1|0?\\.\\d{1,17}|[01]\\.\\d{1,17})$" })),
	timestamp_granularities: nullish(Words),
	include: nullish(Words),
});

const check = TypeCompiler.Compile(TranscriptionRequestForm);

export type TranscriptionRequest = ReturnType<typeof readTranscriptionRequest>;

export interface TranscriptionInput extends TranscriptionRequest {
	readonly duration: AudioDuration;
}

const FIELDS_MAX = 64;

/** Text fields by name, without empty ones. Removes `[]` from names of lists. Fault invalid_request. */
export function formFields(form: FormData): Record<string, string | string[]> {
	const fields: Record<string, string | string[]> = Object.create(null);
	let count = 0;
	for (const [rawName, value] of form) {
		if (typeof value !== "string") continue;
		count += 1;
		if (count > FIELDS_MAX) throw new Fault("invalid_request", "The form has more than 64 fields.");
		if (value === "") continue;
		const list = rawName.endsWith("[]");
		const name = list ? rawName.slice(0, -2) : rawName;
		const before = fields[name];
		if (before === undefined) fields[name] = list ? [value] : value;
		else fields[name] = [...(typeof before === "string" ? [before] : before), value];
	}
	return fields;
}

export function readTranscriptionRequest(form: FormData, body: Readonly<Record<string, unknown>>, model: Model) {
	assertBody(check, body);
	const file = form.get("file");
	if (!(file instanceof Blob) || file.size === 0)
		throw new Fault("invalid_request", "`file` must be an audio file.", { param: "file" });
	const format = body.response_format ?? "json";
	const stream = body.stream === "true";
	if (stream && format !== "json" && format !== "text") {
		throw new Fault("invalid_request", "`response_format` must be `json` or `text` if `stream` is true.", {
			param: "response_format",
		});
	}
	const { fields, ignored } = supportedFields(body, model, OWN_FIELDS.transcription);
	return {
		file: file as File,
		fileName: safeName((file as File).name),
		format,
		stream,
		fields: fields as Record<string, string | readonly string[]>,
		ignored,
	};
}

/** File name for the model server, which detects the audio format by the extension. */
function safeName(name: string | undefined): string {
	const plain = (name ?? "").replace(/^.*[/\\]/, "").replace(/[^A-Za-z0-9._-]/g, "_");
	return plain === "" || plain.startsWith(".") ? `audio${plain}`.slice(0, 80) : plain.slice(-80);
}

/** Maximum input and output tokens of half a minute of audio, the window of speech models. */
const WINDOW_S = 30;
const WINDOW_INPUT_TOKENS_MAX = 1_500;
const WINDOW_OUTPUT_TOKENS_MAX = 448;
/** Tokens per second of audio that are charged if the upstream server reports none. */
export const INPUT_TOKENS_PER_SECOND_TYPICAL = 25;

/** Upper bounds of tokens, for models that are charged by tokens. */
export function audioTokensMax(
	model: Model,
	{ secondsMax }: AudioDuration,
	promptText: string,
): Pick<Quantities, "promptTokens" | "completionTokens"> {
	const windows = Math.ceil(secondsMax / WINDOW_S);
	const prompt = promptTokensMax({ ...measureText(promptText, model), messages: 1, images: 0, hasTools: false }, model);
	return {
		promptTokens: windows * (WINDOW_INPUT_TOKENS_MAX + prompt),
		completionTokens: Math.max(model.maxOutputTokens, windows * WINDOW_OUTPUT_TOKENS_MAX),
	};
}
