import { ConsoleError } from "./console-error.ts";

/** The largest body that a page of ours sends. */
const BODY_BYTES_MAX = 64 * 1024;

/**
 * What a request that may change something must be: from a page of ours, as JSON, of a size that is known beforehand.
 * A form or a script of another site can send none of these without the browser naming its origin. Throws a Fault.
 */
export function checkChange(request: Request, origins: readonly string[], bodyBytesMax = BODY_BYTES_MAX): void {
	if (request.method === "GET" || request.method === "HEAD") return;
	const { headers } = request;
	const site = headers.get("sec-fetch-site");
	if (!origins.includes(headers.get("origin") ?? "") || (site !== null && site !== "same-origin")) {
		throw new ConsoleError("forbidden", "This request does not come from a page of this service.");
	}
	const length = headers.get("content-length");
	if (length !== null && Number(length) > bodyBytesMax)
		throw new ConsoleError("payload_too_large", "The request is too large.");
	// No form can send a DELETE, and ours have no body.
	if (request.method === "DELETE" && length === null && request.body === null) return;
	const type = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
	if (type !== "application/json") throw new ConsoleError("unsupported_media_type", "Send JSON.");
	if (length === null || !/^\d{1,15}$/.test(length)) throw new ConsoleError("invalid_request", "A length is required.");
}
