import type { ByteRange } from "../../files/file-reader.ts";

/**
 * What a `range` header asks for of so many bytes; null for all of them: without a header, and for what is no single
 * range of bytes, which RFC 9110 lets a server overlook. "none" if none of the bytes is there.
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
