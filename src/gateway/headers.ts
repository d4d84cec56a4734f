/** Headers of an answer, all set on the Response itself: what a framework adds later may re-encode the body. */
export function answerHeaders(
	requestId: string,
	ignored: readonly string[],
	contentType: string,
): Record<string, string> {
	const headers: Record<string, string> = {
		"content-type": contentType,
		"cache-control": "no-store",
		"x-content-type-options": "nosniff",
		"x-accel-buffering": "no",
		"x-request-id": requestId,
	};
	const names = ignoredHeader(ignored);
	if (names !== undefined) headers["x-ignored-parameters"] = names;
	return headers;
}

const HEADER_NAMES_MAX = 20;

/** The value of `x-ignored-parameters`: names that are safe in a header, at most 20, then a count; undefined if none. */
export function ignoredHeader(ignored: readonly string[]): string | undefined {
	if (ignored.length === 0) return undefined;
	const shown = ignored.filter((name) => /^[A-Za-z0-9_.-]{1,64}$/.test(name)).slice(0, HEADER_NAMES_MAX);
	const more = ignored.length - shown.length;
	return [...shown, ...(more > 0 ? [`+${more}`] : [])].join(", ");
}

/** Headers of a small JSON answer that costs nothing. */
export function jsonHeaders(requestId: string): Record<string, string> {
	return {
		"content-type": "application/json",
		"cache-control": "no-store",
		"x-content-type-options": "nosniff",
		"x-request-id": requestId,
	};
}
