import { Fault } from "./fault.ts";

/** Maximum elements that arrays and objects on the outermost level of a JSON text may have, by member name. */
export type ListBounds = ReadonlyMap<string, number>;

/** Lowest bound that `ListBounds` may contain. */
export const ELEMENTS_MIN = 16;
/** Maximum number of elements of an array or object without an individual bound. */
const LIST_MAX = 10_000;
const PARAM_CHARS_MAX = 64;

/** Bound of a member's elements. `written`: the member's name as in the text, with quotes and escapes. */
export function elementsLimit(written: string, lists: ListBounds | undefined): number {
	return lists?.get(decodedName(written)) ?? LIST_MAX;
}

/** Fault `invalid_request`, which names the array or object. */
export function tooManyElementsFault(written: string, lists: ListBounds | undefined): Fault {
	const param = decodedName(written).slice(0, PARAM_CHARS_MAX);
	const count = String(elementsLimit(written, lists));
	return new Fault("invalid_request", "`{param}` has more than {count} elements.", { values: { param, count }, param });
}

/** The member's name without quotes and escapes; as written if an escape is invalid. */
export function decodedName(written: string): string {
	try {
		return written.includes("\\") ? (JSON.parse(written) as string) : written.slice(1, -1);
	} catch {
		return written.slice(1, -1);
	}
}
