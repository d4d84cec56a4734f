/** Puts together again what `answer-values.ts` rebuilt from the events of a stream. */
import { asObjects, asText, type JsonObject } from "../wire-value.ts";

/** Members that come in pieces; of all others the last value counts. */
const PIECES: ReadonlySet<string> = new Set(["text", "summary", "data", "thinking", "transcript"]);

/** What was gathered so far and what comes next, of the same name. */
export function merged(known: unknown, next: unknown): unknown {
	if (Array.isArray(next)) return asObjects(next).reduce(appended, asObjects(known));
	return joined((known ?? {}) as JsonObject, next as JsonObject);
}

/** A piece of the last item goes on there; anything else is the next item. */
function appended(items: JsonObject[], item: JsonObject): JsonObject[] {
	const last = items.at(-1);
	const goesOn =
		last !== undefined &&
		last.type === item.type &&
		last.index === item.index &&
		(item.index !== undefined || item.type === "thinking") &&
		last.signature === undefined;
	return goesOn ? [...items.slice(0, -1), joined(last, item)] : [...items, item];
}

function joined(known: JsonObject, next: JsonObject): JsonObject {
	const both: Record<string, unknown> = { ...known };
	for (const [name, value] of Object.entries(next)) {
		const before = asText(known[name]);
		both[name] = PIECES.has(name) && before !== undefined ? `${before}${value}` : value;
	}
	return both;
}
