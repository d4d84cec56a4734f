import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { Fault } from "../base/fault.ts";

/** How lines are completed that do not say all that a batch asks of them. */
export interface LineDefaults {
	/** Path of the interface that every line goes to. */
	readonly endpoint: string;
	/** For lines that name no model. */
	readonly model: string | undefined;
}

/**
 * The lines of a batch: those of the file as they are, or, where a line is the body of a request alone, one around it with
 * `line-7` for its custom ID. A file of any size is read line by line. Fault invalid_request names what is no JSON object.
 */
export async function* inputLines(path: string, defaults: LineDefaults): AsyncGenerator<string, void> {
	let number = 0;
	for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
		number += 1;
		// Editors of Windows begin a file with a byte order mark.
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

/** What the runtime has and its types do not: how the text writes a value, and a value that is written as a text. */
const exactJson = JSON as unknown as {
	parse(text: string, reviver: (name: string, value: unknown, as: { readonly source?: string }) => unknown): unknown;
	rawJSON(text: string): unknown;
};

/** A number stays as the file writes it: a whole one beyond 2^53 would be another one, and the service sent what nobody wrote. */
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
