import { Fault } from "../base/fault.ts";
import { checkStructure } from "../base/json-structure.ts";
import { nextTurn } from "../base/time-slice.ts";
import type { TextValues } from "../base/translate.ts";
import { type BatchProblem, problemOf } from "./batch-record.ts";

/** A parsed line. */
export interface BatchLine {
	readonly customId: string;
	readonly body: Readonly<Record<string, unknown>>;
	/** Whether a number of the line is beyond a double's range (`1e400`). */
	readonly mayBeInfinite: boolean;
	readonly model: string;
}

export type LineProblem = Omit<BatchProblem, "line">;

const CUSTOM_ID_CHARS_MAX = 512;
/** Numbers without such an exponent or so many digits fit into a double. */
const MAY_BE_INFINITE = /\d[eE]\+?\d{3}|\d{200}/;
/** `JSON.rawJSON` is missing in the compiler's libraries. */
const { rawJSON: rawJson } = JSON as unknown as { rawJSON(text: string): unknown };
/** A line of at least this length is parsed in a time slice of its own. */
const LONG_CHARS = 256 * 1024;

/** Parses and checks a line for `endpoint`. Returns the first problem. */
export async function readLine(text: string, endpoint: string): Promise<BatchLine | LineProblem> {
	const parsed = await parse(text);
	if ("code" in parsed) return parsed;
	const { value } = parsed;
	const { custom_id: customId, method, url, body } = value;
	if (typeof customId !== "string" || customId === "")
		return missing("custom_id", "`custom_id` must be a non-empty string.");
	if (customId.length > CUSTOM_ID_CHARS_MAX)
		return invalid("custom_id", "`custom_id` has more than {count} characters.", { count: CUSTOM_ID_CHARS_MAX });
	if (method === undefined || method === null) return missing("method", "`method` is missing: it must be `POST`.");
	if (method !== "POST") return problemOf("invalid_method", "method", "`method` must be `POST`.");
	if (typeof url !== "string") return missing("url", "`url` is missing: it must be the endpoint of the batch.");
	if (url !== endpoint)
		return problemOf("url_mismatch", "url", "`url` must be the endpoint of the batch, {endpoint}.", { endpoint });
	if (typeof body !== "object" || body === null || Array.isArray(body))
		return missing("body", "`body` must be the request, a JSON object.");
	const fields = body as Record<string, unknown>;
	if (typeof fields.model !== "string" || fields.model === "")
		return missing("body.model", "`body.model` must be the ID of a model: see GET /v1/models.");
	if (fields.stream === true) return invalid("body.stream", "`stream` is not supported in a batch. Remove it.");
	return { customId, body: fields, mayBeInfinite: MAY_BE_INFINITE.test(text), model: fields.model };
}

/**
 * The request body of a line. A number beyond a double's range stays as written, so that its field's check refuses it;
 * JSON would write null.
 */
export function bodyText({ body, mayBeInfinite }: BatchLine): string {
	if (!mayBeInfinite) return JSON.stringify(body);
	return JSON.stringify(body, (_, value: unknown) => {
		if (value === Number.POSITIVE_INFINITY) return rawJson("1e400");
		return value === Number.NEGATIVE_INFINITY ? rawJson("-1e400") : value;
	});
}

async function parse(text: string): Promise<{ value: Record<string, unknown> } | LineProblem> {
	try {
		const checked = checkStructure(text);
		if (checked !== undefined) await checked;
		if (text.length >= LONG_CHARS) await nextTurn();
		const value: unknown = JSON.parse(text);
		if (typeof value === "object" && value !== null && !Array.isArray(value))
			return { value: value as Record<string, unknown> };
		return notJson("The line is not a JSON object.");
	} catch (error) {
		const [text] = error instanceof Fault ? error.texts : [];
		return notJson(text?.id ?? "The line is not valid JSON.", text?.values);
	}
}

/** The `custom_id` of a checked line. */
export function customIdOf(text: string): string {
	return String((JSON.parse(text) as { custom_id?: unknown }).custom_id);
}

function notJson(id: string, values?: TextValues): LineProblem {
	return problemOf("invalid_json_line", null, id, values);
}

function missing(param: string, id: string): LineProblem {
	return problemOf("missing_required_parameter", param, id);
}

function invalid(param: string, id: string, values?: TextValues): LineProblem {
	return problemOf("invalid_request", param, id, values);
}
