import { Fault } from "../base/fault.ts";

/** As elsewhere in `/v1`: printable ASCII. */
const TOKEN = /^[\x21-\x7e]{1,255}$/;
const ETAGS_MAX = 32;

/** The token of a creation: the header `Idempotency-Key`, or the field `client_token`; both only if they are the same. Fault invalid_request. */
export function clientToken(headers: Headers, body: unknown): string | null {
	const header = headers.get("idempotency-key");
	const field = (body as { client_token?: string } | undefined)?.client_token ?? null;
	if (header !== null && !TOKEN.test(header))
		throw new Fault("invalid_request", "`Idempotency-Key` must be 1 to 255 printable characters.");
	if (header !== null && field !== null && header !== field)
		throw new Fault("invalid_request", "`Idempotency-Key` and `client_token` differ. Send one of them.", {
			param: "client_token",
		});
	return header ?? field;
}

/**
 * The entity tags of `If-Match`, without quotes; null if there is none, or for `*`. A weak one matches nothing (RFC 9110,
 * 13.1.1). Fault invalid_request.
 */
export function ifMatch(headers: Headers): readonly string[] | null {
	const header = headers.get("if-match")?.trim();
	if (header === undefined || header === "*") return null;
	const tags = header.split(",").map((tag) => tag.trim());
	if (tags.length > ETAGS_MAX || !tags.every((tag) => /^(W\/)?"[\x21\x23-\x7e]*"$/.test(tag)))
		throw new Fault("invalid_request", "`If-Match` must hold entity tags, as `ETag` gave them.");
	return tags.filter((tag) => tag.startsWith('"')).map((tag) => tag.slice(1, -1));
}
