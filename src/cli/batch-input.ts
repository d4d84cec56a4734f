import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { Fault } from "../base/fault.ts";

/** Values for fields that a line lacks. */
export interface LineDefaults {
	/** The API path of every line. */
	readonly endpoint: string;
	/** For lines without a model. */
	readonly model: string | undefined;
}

/**
 * Yields the lines of a batch, reading a file of any size line by line. A line that is only a request body is wrapped,
 * with a custom ID such as `line-7`. Fault `invalid_request` names the first line that is no JSON object.
 */
export async function* inputLines(path: string, defaults: LineDefaults): AsyncGenerator<string, void> {
	let number = 0;
	for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
		number += 1;
		// Windows editors begin a file with a byte order mark.
		const plain = number === 1 ? text.replace(/^\uFEFF/, "") : text;
		if (plain.trim() === "") continue;
		yield `${JSON.stringify(completed(objectOf(plain, number), number, defaults))}\n`;
	}
}

function objectOf(text: string, number: number): Record<string, unknown> {
	let value: unknown;
	try {
		value = exactJson.parse(text, asWritten);
	} catch {
		value = undefined;
	}
	if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
	throw new Fault("invalid_request", `Line ${number} is not a JSON object.`);
}

/** Functions of the runtime that its types lack: a value's source text, and a value written as raw text. */
const exactJson = JSON as unknown as {
	parse(text: string, reviver: (name: string, value: unknown, as: { readonly source?: string }) => unknown): unknown;
	rawJSON(text: string): unknown;
};

/** Keeps a number as the file writes it: an integer above 2^53 would lose digits. */
function asWritten(_name: string, value: unknown, { source }: { readonly source?: string }): unknown {
	const isOther = typeof value === "number" && source !== undefined && String(value) !== source;
	return isOther ? exactJson.rawJSON(source) : value;
}

function completed(line: Record<string, unknown>, number: number, { endpoint, model }: LineDefaults) {
	const isWhole = typeof line.body === "object" && line.body !== null;
	const body = (isWhole ? line.body : line) as Record<string, unknown>;
	return {
		...(isWhole ? line : {}),
		custom_id: isWhole ? (line.custom_id ?? `line-${number}`) : `line-${number}`,
		method: isWhole ? (line.method ?? "POST") : "POST",
		url: isWhole ? (line.url ?? endpoint) : endpoint,
		body: model === undefined || body.model !== undefined ? body : { model, ...body },
	};
}
