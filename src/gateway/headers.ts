import { ignoredHeader } from "./chat/chat-request.ts";

/** Headers of an answer, all set on the Response itself: what a framework adds later may re-encode the body. */
export function answerHeaders(
	answer: { requestId: string; ask: { ignored: readonly string[] } },
	contentType: string,
): Record<string, string> {
	const headers: Record<string, string> = {
		"content-type": contentType,
		"cache-control": "no-store",
		"x-content-type-options": "nosniff",
		"x-accel-buffering": "no",
		"x-request-id": answer.requestId,
	};
	const ignored = ignoredHeader(answer.ask.ignored);
	if (ignored !== undefined) headers["x-ignored-parameters"] = ignored;
	return headers;
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
