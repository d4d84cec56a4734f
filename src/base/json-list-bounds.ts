import { Fault } from "./fault.ts";

/** Limits of elements in top-level arrays and objects of a JSON text, by name. */
export type ListBounds = ReadonlyMap<string, number>;

/** Bounds are not lower. */
export const ELEMENTS_MIN = 16;
/** Default limit of elements in an array or object. */
const LIST_MAX = 10_000;
const PARAM_CHARS_MAX = 64;

/** Limit for a member. `written`: its name as in the text, with quotes and escapes. */
export function elementsMax(written: string, lists: ListBounds | undefined): number {
	return lists?.get(plainName(written)) ?? LIST_MAX;
}

/** Fault `invalid_request`, naming the array or object. */
export function tooManyElements(written: string, lists: ListBounds | undefined): Fault {
	const param = plainName(written).slice(0, PARAM_CHARS_MAX);
	const count = String(elementsMax(written, lists));
	return new Fault("invalid_request", "`{param}` has more than {count} elements.", { values: { param, count }, param });
}

/** The name itself; as written if its escapes are invalid. */
export function plainName(written: string): string {
	try {
		return written.includes("\\") ? (JSON.parse(written) as string) : written.slice(1, -1);
	} catch {
		return written.slice(1, -1);
	}
}
