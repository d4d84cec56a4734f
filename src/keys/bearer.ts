import { Fault } from "../base/fault.ts";
import { parseSecret, type Secret } from "./secret.ts";

/** A longer header cannot contain a secret, and is refused without parsing. */
const HEADER_CHARS_MAX = 512;

/**
 * The secret in `Authorization: Bearer` or `x-api-key`. Refuses two different ones, because a proxy might check one and
 * this service use the other. Faults: `missing_api_key`, `invalid_api_key`.
 */
export function readBearerSecret(headers: Headers, serviceName: string): Secret {
	const secret = parseSecret(readBearerText(headers), serviceName);
	if (secret === undefined) throw invalidApiKey();
	return secret;
}

/** The text of the header; "" if it is too long for a secret. Faults: `missing_api_key`, `invalid_api_key`. */
export function readBearerText(headers: Headers): string {
	const authorization = headers.get("authorization");
	const apiKey = headers.get("x-api-key")?.trim();
	if (authorization === null && apiKey === undefined) {
		throw new Fault(
			"missing_api_key",
			"No API key was given. Send it in the header `Authorization: Bearer <API_KEY>`.",
		);
	}
	const bearer = authorization === null ? undefined : tokenOf(authorization);
	if (bearer !== undefined && apiKey !== undefined && bearer !== apiKey) {
		throw new Fault(
			"invalid_api_key",
			"The headers `Authorization` and `x-api-key` hold different keys. Send one of them.",
		);
	}
	const text = bearer ?? apiKey ?? "";
	return text.length > HEADER_CHARS_MAX ? "" : text;
}

/** Malformed and unknown keys get the same error, so that responses do not reveal which keys exist. */
export function invalidApiKey(): Fault {
	return new Fault("invalid_api_key", "The API key is not valid. Please check that it was copied in full.");
}

/** The usual form of the header. Tried first, because matching it allocates nothing. */
const USUAL = /^Bearer \S+$/;
const SCHEME_CHARS = "Bearer ".length;

function tokenOf(authorization: string): string {
	if (authorization.length > HEADER_CHARS_MAX) throw invalidApiKey();
	if (USUAL.test(authorization)) return authorization.slice(SCHEME_CHARS);
	const match = /^bearer[ \t]+(\S+)[ \t]*$/i.exec(authorization);
	if (match?.[1] === undefined) {
		if (/^bearer[ \t]*$/i.test(authorization)) {
			throw new Fault(
				"missing_api_key",
				"The header `Authorization` holds no API key. Send `Authorization: Bearer <API_KEY>`.",
			);
		}
		throw new Fault("invalid_api_key", "The header `Authorization` must have the form `Bearer <API_KEY>`.");
	}
	return match[1];
}
