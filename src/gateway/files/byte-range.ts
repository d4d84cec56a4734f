import type { ByteRange } from "../../files/file-reader.ts";

/**
 * The requested range of a `range` header. Null for the whole file: no header, or not a single byte range (RFC 9110
 * allows ignoring it). "none" if no byte is in range.
 */
export function rangeOf(header: string | null, bytes: number): ByteRange | null | "none" {
	const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.replaceAll(" ", "") ?? "");
	if (match === null) return null;
	const [first = "", last = ""] = match.slice(1);
	if (first === "" && last === "") return null;
	const start = first === "" ? Math.max(0, bytes - Number(last)) : Number(first);
	const end = first === "" || last === "" ? bytes : Math.min(bytes, Number(last) + 1);
	if (last !== "" && first !== "" && Number(last) < Number(first)) return null;
	return start >= end ? "none" : { start, end };
}
