import { Fault } from "../base/fault.ts";
import { checkJsonStructure } from "../base/json-structure.ts";
import { nextTurn } from "../base/time-slice.ts";
import type { TextValues } from "../base/translate.ts";
import { type BatchProblem, toProblem } from "./batch-record.ts";

/** Longest line in bytes. The text of a longer line is not kept. */
export const LINE_BYTES_MAX = 8 * 1024 * 1024;

/** A line of an input file. Empty lines are counted, but not yielded. */
interface InputLine {
	/** Line number, from 1. */
	readonly line: number;
	/** The line without its line end; undefined if it is too long. */
	readonly text: string | undefined;
	/** Offset of the line in the file, in bytes. */
	readonly bytes: number;
}

const LINE_END = 0x0a;
const RETURN = 0x0d;
/** After this many bytes, or this many lines, the reader lets other tasks run. */
const SLICE_BYTES = 256 * 1024;
const SLICE_LINES = 200;
const BYTE_ORDER_MARK = "\uFEFF";

/**
 * Yields the lines of a file as it arrives. At most one chunk and one line are in memory; the rest of a line that is
 * too long is skipped.
 */
export async function* inputLines(bytes: ReadableStream<Uint8Array>): AsyncGenerator<InputLine, void> {
	const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
	let line = 0;
	/** Pieces of the current line from earlier chunks, and their total length. */
	let pieces: Uint8Array[] = [];
	let lineBytes = 0;
	let sliceBytes = 0;
	let sliceLines = 0;

	function take(end: Uint8Array): InputLine | undefined {
		line += 1;
		const total = lineBytes + end.length;
		const whole = total > LINE_BYTES_MAX ? undefined : pieces.length === 0 ? end : Buffer.concat([...pieces, end]);
		pieces = [];
		lineBytes = 0;
		if (whole === undefined) return { line, text: undefined, bytes: total };
		const text = decoder.decode(whole.at(-1) === RETURN ? whole.subarray(0, -1) : whole);
		const plain = line === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
		return plain.trim() === "" ? undefined : { line, text: plain, bytes: total };
	}

	for await (const chunk of bytes) {
		let from = 0;
		for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, from)) {
			const taken = take(chunk.subarray(from, end));
			sliceBytes += end - from;
			sliceLines += 1;
			from = end + 1;
			if (taken !== undefined) yield taken;
			if (sliceBytes < SLICE_BYTES && sliceLines < SLICE_LINES) continue;
			sliceBytes = 0;
			sliceLines = 0;
			await nextTurn();
		}
		const rest = chunk.subarray(from);
		lineBytes += rest.length;
		// Copied, because a short piece would keep its whole chunk in memory.
		if (lineBytes <= LINE_BYTES_MAX) pieces.push(rest.slice());
		else pieces = [];
	}
	if (lineBytes === 0) return;
	const last = take(new Uint8Array());
	if (last !== undefined) yield last;
}

export interface OpenLine {
	readonly line: number;
	readonly text: string;
}

/** Thrown if the input cannot be read now, or can never be read because its bytes are lost. */
export class InputUnreadable extends Error {
	override readonly name = "InputUnreadable" as const;
}

/** Yields the input's lines except those whose numbers are in `done`. Throws InputUnreadable. */
export async function* remainingLines(
	bytes: ReadableStream<Uint8Array>,
	done: ReadonlySet<number>,
): AsyncGenerator<OpenLine, void> {
	try {
		for await (const { line, text } of inputLines(bytes)) {
			// An undefined text means a line that is too long, which the validation has reported.
			if (text === undefined || done.has(line)) continue;
			yield { line, text };
		}
	} catch (cause) {
		throw new InputUnreadable("the input of the batch cannot be read on", { cause });
	}
}

export interface BatchLine {
	readonly customId: string;
	/** The request's JSON as written in the file. */
	readonly body: string;
	readonly inputs: number;
	readonly model: string;
}

export type LineProblem = Omit<BatchProblem, "line">;

const CUSTOM_ID_CHARS_MAX = 512;
/** Each line of at least this length is parsed in its own event-loop turn. */
const LONG_CHARS = 256 * 1024;

/** Parses and checks a line for `endpoint`. Returns the request, or the line's first problem. */
export async function readLine(text: string, endpoint: string): Promise<BatchLine | LineProblem> {
	const parsed = await parse(text);
	if ("code" in parsed) return parsed;
	const { value, raw } = parsed;
	const { custom_id: customId, method, url, body } = value;
	if (typeof customId !== "string" || customId === "")
		return missing("custom_id", "`custom_id` must be a non-empty string.");
	if (customId.length > CUSTOM_ID_CHARS_MAX)
		return invalid("custom_id", "`custom_id` has more than {count} characters.", { count: CUSTOM_ID_CHARS_MAX });
	if (method === undefined || method === null) return missing("method", "`method` is missing: it must be `POST`.");
	if (method !== "POST") return toProblem("invalid_method", "method", "`method` must be `POST`.");
	if (typeof url !== "string") return missing("url", "`url` is missing: it must be the endpoint of the batch.");
	if (url !== endpoint)
		return toProblem("url_mismatch", "url", "`url` must be the endpoint of the batch, {endpoint}.", { endpoint });
	if (typeof body !== "object" || body === null || Array.isArray(body))
		return missing("body", "`body` must be the request, a JSON object.");
	const fields = body as Record<string, unknown>;
	if (typeof fields.model !== "string" || fields.model === "")
		return missing("body.model", "`body.model` must be the ID of a model: see GET /v1/models.");
	if (fields.stream === true) return invalid("body.stream", "`stream` is not supported in a batch. Remove it.");
	return { customId, body: raw ?? JSON.stringify(body), inputs: inputsOf(fields.input), model: fields.model };
}

/** Number of inputs: a list of token ids is one prompt; a list of texts or prompts counts by its length. */
function inputsOf(input: unknown): number {
	if (!Array.isArray(input)) return 1;
	return typeof input[0] === "number" ? 1 : input.length;
}

/** `raw`: the body as written in the file, if it can be located. */
async function parse(text: string): Promise<{ value: Record<string, unknown>; raw: string | undefined } | LineProblem> {
	try {
		const checked = checkJsonStructure(text, "body");
		const raw = (checked instanceof Promise ? await checked : checked).field()?.text;
		if (text.length >= LONG_CHARS) await nextTurn();
		const value: unknown = JSON.parse(text);
		if (typeof value === "object" && value !== null && !Array.isArray(value))
			return { value: value as Record<string, unknown>, raw };
		return notJson("The line is not a JSON object.");
	} catch (error) {
		const [text] = error instanceof Fault ? error.texts : [];
		return notJson(text?.id ?? "The line is not valid JSON.", text?.values);
	}
}

/** The `custom_id` of a line that has been validated. */
export function readCustomId(text: string): string {
	return String((JSON.parse(text) as { custom_id?: unknown }).custom_id);
}

function notJson(id: string, values?: TextValues): LineProblem {
	return toProblem("invalid_json_line", null, id, values);
}

function missing(param: string, id: string): LineProblem {
	return toProblem("missing_required_parameter", param, id);
}

function invalid(param: string, id: string, values?: TextValues): LineProblem {
	return toProblem("invalid_request", param, id, values);
}
