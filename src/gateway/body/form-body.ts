import { Fault } from "../../base/fault.ts";
import type { Connection } from "../connection.ts";
import { type BodyReads, inTime } from "./body-reads.ts";
import { declaredBytes, FILE_DEADLINE_MS, readBytes, TAKES_ANY, type TakesBytes } from "./bytes-body.ts";

/**
 * Reads a multipart form of at most `bytesMax` bytes, or parses `bytes` if the body was read already. Files are not
 * copied. Faults: unsupported_media_type, payload_too_large, request_timeout, invalid_request.
 */
export async function readForm(
	connection: Connection,
	bytesMax: number,
	reads: BodyReads,
	takes: TakesBytes = TAKES_ANY,
	bytes?: Uint8Array<ArrayBuffer>,
): Promise<FormData> {
	const { request } = connection;
	const type = request.headers.get("content-type") ?? "";
	if (!/^multipart\/form-data\b/i.test(type))
		throw new Fault("unsupported_media_type", "The body must be a form: `content-type: multipart/form-data`.");
	const whole = (body: Uint8Array<ArrayBuffer>) => new Response(body, { headers: { "content-type": type } });
	if (bytes !== undefined) return parseForm(whole(bytes));
	const declared = declaredBytes(request, bytesMax, takes);
	// A body without a length is counted as it arrives.
	const source = declared === null ? whole(await readBytes(connection, bytesMax, reads, takes)) : request;
	return inTime(reads, FILE_DEADLINE_MS, { connection, reading: parseForm(source) });
}

async function parseForm(source: Request | Response): Promise<FormData> {
	try {
		return await source.formData();
	} catch (error) {
		throw new Fault("invalid_request", "The body is not a valid form.", { cause: error });
	}
}
