/** Reading of JSON that another machine wrote: nothing about its shape is taken for granted. */

export type JsonObject = Readonly<Record<string, unknown>>;

export function asObject(value: unknown): JsonObject | undefined {
	return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

export function asArray(value: unknown): readonly unknown[] | undefined {
	return Array.isArray(value) ? value : undefined;
}

export function asText(value: unknown): string | undefined {
	return typeof value === "string" ? value : undefined;
}

/** A whole number from 0 to `max`; undefined for anything else, numbers in strings too. */
export function asCount(value: unknown, max: number): number | undefined {
	return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= max ? value : undefined;
}

/** The parsed value, or undefined where the text is not JSON (`null` in JSON is undefined too: nobody needs it here). */
export function parseJson(text: string): unknown {
	try {
		return JSON.parse(text) ?? undefined;
	} catch {
		return undefined;
	}
}

/** The objects among the items of an array; none if it is no array. */
export function asObjects(value: unknown): JsonObject[] {
	const objects: JsonObject[] = [];
	for (const item of asArray(value) ?? []) {
		const object = asObject(item);
		if (object !== undefined) objects.push(object);
	}
	return objects;
}
